// classic/double_checked, fixed.
// Wrong: the pointer is stored before the object's field is set; a reader that skips the lock
// sees a half-built object.
// Fix: the object is built before an atomic pointer publishes it.
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
static std::atomic<Config *> instance;

static Config *get()
{
    if (instance == nullptr) {
        std::lock_guard<std::mutex> guard(lock);
        if (instance == nullptr) {
            storage.value = 42;
            instance = &storage;
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
