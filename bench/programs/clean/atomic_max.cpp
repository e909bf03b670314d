// The greatest of all by compare and exchange.
#include <atomic>
#include <cassert>
#include <thread>
int main()
{
    std::atomic<int> greatest{0};
    auto offer = [&](int from) {
        for (int x = from; x < from + 3; x++) {
            int seen = greatest.load();
            while (seen < x && !greatest.compare_exchange_weak(seen, x)) {
            }
        }
    };
    std::thread a(offer, 5), b(offer, 1), c(offer, 3);
    a.join();
    b.join();
    c.join();
    assert(greatest == 7);
}
