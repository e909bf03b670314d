// A latch opens when all have arrived.
#include <cassert>
#include <latch>
#include <thread>
int main()
{
    std::latch ready(2);
    int a = 0, b = 0;
    std::thread one([&] { a = 1; ready.count_down(); });
    std::thread two([&] { b = 2; ready.count_down(); });
    ready.wait();
    assert(a + b == 3);
    one.join();
    two.join();
}
