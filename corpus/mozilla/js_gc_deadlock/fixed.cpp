// mozilla/js_gc_deadlock, fixed.
// Wrong: a request holds the title lock while it waits for the collection to end; the
// collector needs the title lock to end it.
// Fix: the request waits for the collector before it takes the title lock.
// Origin: Mozilla JS engine, deadlock of the collector and a request (ConAir MozillaJS, Table
// 5.2; Mozilla5, Table 5.8)
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex gcLock, titleLock;
static std::condition_variable gcDone;
static bool gcRunning;
static int slots, swept;

static void waitForGc()
{
    std::unique_lock<std::mutex> guard(gcLock);
    gcDone.wait(guard, [] { return !gcRunning; });
}

static void setSlot()
{
    waitForGc();
    std::lock_guard<std::mutex> title(titleLock);
    slots++;
}

static void collect()
{
    {
        std::lock_guard<std::mutex> guard(gcLock);
        gcRunning = true;
    }
    {
        std::lock_guard<std::mutex> title(titleLock);
        swept = slots;
    }
    {
        std::lock_guard<std::mutex> guard(gcLock);
        gcRunning = false;
    }
    gcDone.notify_all();
}

int main()
{
    std::thread t1(setSlot);
    std::thread t2(collect);

    t1.join();
    t2.join();
    return slots == 1 && swept <= 1 ? 0 : 1;
}
