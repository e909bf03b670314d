// std::call_once.
#include <cassert>
#include <mutex>
#include <thread>
int main()
{
    std::once_flag once;
    int value = 0;
    auto run = [&] {
        std::call_once(once, [&] { value = 5; });
        assert(value == 5);
    };
    std::thread a(run), b(run);
    a.join();
    b.join();
}
