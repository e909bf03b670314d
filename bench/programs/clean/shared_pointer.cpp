// The last owner of a shared pointer destroys.
#include <atomic>
#include <cassert>
#include <memory>
#include <thread>
static std::atomic<int> destroyed{0};
struct Thing {
    int value = 3;
    ~Thing() { destroyed++; }
};
int main()
{
    auto thing = std::make_shared<Thing>();
    std::thread a([copy = thing] { assert(copy->value == 3); });
    std::thread b([copy = thing] { assert(copy->value == 3); });
    thing.reset();
    a.join();
    b.join();
    assert(destroyed == 1);
}
