// A thread that is asked to stop by its token.
#include <atomic>
#include <cassert>
#include <thread>
int main()
{
    std::atomic<int> rounds{0};
    {
        std::jthread t([&](std::stop_token token) {
            do {
                rounds++;
                std::this_thread::yield();
            } while (!token.stop_requested() && rounds < 50);
        });
    }
    assert(rounds > 0);
}
