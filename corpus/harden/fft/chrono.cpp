/* FFT in another spelling: atomics and streams of C++, the oracle behind a member function. */
#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>
#include <raddle_oracle.h>

class Transform {
public:
    long elapsed() const { return end.load(std::memory_order_acquire) - start; }

    void run()
    {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        end.store(1700, std::memory_order_release);
    }

private:
    long start = 1000;
    std::atomic<long> end{0};
};

static Transform transform;

static void report()
{
    long elapsed = transform.elapsed();
    raddle_oracle(elapsed >= 0); /* SITE */
    std::cout << "elapsed " << elapsed << "\n";
}

int main()
{
    std::thread worker([] { transform.run(); });
    report();
    worker.join();
}
