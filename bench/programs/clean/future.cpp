// A promise that is kept by another thread.
#include <cassert>
#include <future>
#include <thread>
int main()
{
    std::promise<int> promise;
    auto result = promise.get_future();
    std::thread t([&] { promise.set_value(9); });
    assert(result.get() == 9);
    t.join();
}
