// A guard around a shared vector.
#include <cassert>
#include <mutex>
#include <thread>
#include <vector>
int main()
{
    std::mutex lock;
    std::vector<int> all;
    auto add = [&](int from) {
        for (int i = 0; i < 3; i++) {
            std::lock_guard<std::mutex> guard(lock);
            all.push_back(from + i);
        }
    };
    std::thread a(add, 0), b(add, 10);
    a.join();
    b.join();
    assert(all.size() == 6);
}
