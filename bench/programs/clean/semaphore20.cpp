// A counting semaphore lets two in at a time.
#include <atomic>
#include <cassert>
#include <semaphore>
#include <thread>
int main()
{
    std::counting_semaphore<2> room(2);
    std::atomic<int> inside{0};
    auto visit = [&] {
        room.acquire();
        assert(++inside <= 2);
        --inside;
        room.release();
    };
    std::thread a(visit), b(visit), c(visit);
    a.join();
    b.join();
    c.join();
}
