// click/router_thread, fixed.
// Wrong: the master deletes the object of a router thread as soon as the thread has seen the
// stop request; the thread still reads its driver.
// Fix: the master joins the thread first.
// Origin: Click-1.8.0, router_thread object deleted while its thread uses it (ConMem Fig.
// 4.10)
#include <condition_variable>
#include <mutex>
#include <thread>

struct Driver {
    volatile int tasks = 3;
};

struct RouterThread {
    long header[3] = {}; // an allocator's own words in a freed object do not reach driver
    Driver *volatile driver;
    explicit RouterThread(Driver *d) : driver(d) {}
    ~RouterThread() { driver = nullptr; }
};

static std::mutex lock;
static std::condition_variable cond;
static bool stopped;
static Driver theDriver;
static volatile int left;

static void run(RouterThread *self)
{
    {
        std::lock_guard<std::mutex> guard(lock);
        stopped = true;
    }
    left = self->driver->tasks;
    cond.notify_one();
}

int main()
{
    RouterThread *thread = new RouterThread(&theDriver);
    std::thread t(run, thread);

    {
        std::unique_lock<std::mutex> guard(lock);
        cond.wait(guard, [] { return stopped; });
    }
    t.join();
    delete thread;
    return left == 3 ? 0 : 1;
}
