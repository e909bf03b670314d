// A queue with a condition and an end mark.
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>
int main()
{
    std::mutex lock;
    std::condition_variable changed;
    std::queue<int> queue;
    int sum = 0;
    std::thread consumer([&] {
        for (;;) {
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard, [&] { return !queue.empty(); });
            int x = queue.front();
            queue.pop();
            if (x < 0)
                return;
            sum += x;
        }
    });
    for (int x : {1, 2, 3, -1}) {
        std::lock_guard<std::mutex> guard(lock);
        queue.push(x);
        changed.notify_one();
    }
    consumer.join();
    assert(sum == 6);
}
