// A pool of two threads that ends when its tasks are done.
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>
class Pool {
    std::mutex lock;
    std::condition_variable news;
    std::deque<std::function<void()>> tasks;
    bool is_closed = false;
    std::vector<std::thread> threads;
    void run()
    {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock guard(lock);
                news.wait(guard, [&] { return is_closed || !tasks.empty(); });
                if (tasks.empty())
                    return;
                task = std::move(tasks.front());
                tasks.pop_front();
            }
            task();
        }
    }

public:
    Pool()
    {
        for (int i = 0; i < 2; i++)
            threads.emplace_back([this] { run(); });
    }
    void add(std::function<void()> task)
    {
        std::lock_guard guard(lock);
        tasks.push_back(std::move(task));
        news.notify_one();
    }
    ~Pool()
    {
        {
            std::lock_guard guard(lock);
            is_closed = true;
        }
        news.notify_all();
        for (auto &thread : threads)
            thread.join();
    }
};
int main()
{
    std::atomic<int> done{0};
    {
        Pool pool;
        for (int i = 0; i < 4; i++)
            pool.add([&] { done++; });
    }
    assert(done == 4);
}
