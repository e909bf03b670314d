// classic/double_checked, buggy.
// Wrong: the pointer is stored before the object's field is set; a reader that skips the lock
// sees a half-built object.
// Origin: classic: double-checked locking that publishes the object before it is built
#include <atomic>
#include <cassert>
#include <mutex>
#include <thread>

struct Config {
    volatile int value = 0;
};

static std::mutex lock;
static Config storage;
static Config *volatile instance;

static Config *get()
{
    if (instance == nullptr) {
        std::lock_guard<std::mutex> guard(lock);
        if (instance == nullptr) {
            instance = &storage;
            storage.value = 42;
        }
    }
    return instance;
}

static void use()
{
    assert(get()->value == 42);
}

int main()
{
    std::thread t1(use);
    std::thread t2(use);

    t1.join();
    t2.join();
    return 0;
}
