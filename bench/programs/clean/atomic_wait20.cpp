// Waiting on an atomic.
#include <atomic>
#include <cassert>
#include <thread>
int main()
{
    std::atomic<int> stage{0};
    int data = 0;
    std::thread t([&] {
        data = 4;
        stage.store(1, std::memory_order_release);
        stage.notify_one();
    });
    stage.wait(0, std::memory_order_acquire);
    assert(data == 4);
    t.join();
}
