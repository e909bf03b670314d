// mozilla/js_property_cache, fixed.
// Wrong: the property cache is filled key first and value second; a lookup in between hits the
// new key and gets the old value.
// Fix: filling and lookup hold the cache's lock.
// Origin: Mozilla, wrong results of JavaScript execution (CTrigger Table 2; Mozilla6, Table
// 5.8)
#include <mutex>
#include <thread>

static struct {
    volatile int key, value;
} cache = {1, 100};
static volatile int wrong;
static std::mutex cacheLock;

static void fill(int key)
{
    std::lock_guard<std::mutex> guard(cacheLock);
    cache.key = key;
    cache.value = key * 100;
}

static void evaluate(int key)
{
    std::lock_guard<std::mutex> guard(cacheLock);
    int value = cache.key == key ? cache.value : key * 100;

    if (value != key * 100)
        wrong = 1;
}

int main()
{
    std::thread t1(fill, 2);
    std::thread t2(evaluate, 2);

    t1.join();
    t2.join();
    return wrong;
}
