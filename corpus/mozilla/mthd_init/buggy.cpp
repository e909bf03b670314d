// mozilla/mthd_init, buggy.
// Wrong: the creator lets the new thread go and then stores its descriptor; the thread may use
// mThd before it is stored.
// Origin: Mozilla XPCOM, mThd (Fig. 1.2 and 5.9; ConAir MozillaXP: order violation)
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

enum { THREAD_DETACHED = 1 };

struct Thd {
    int state;
};

static Thd descriptor{THREAD_DETACHED};
static Thd *volatile mThd;
static std::mutex startLock;
static std::condition_variable startCond;
static bool started;

static int getState(Thd *thd)
{
    return thd->state & THREAD_DETACHED;
}

static void get()
{
    {
        std::unique_lock<std::mutex> guard(startLock);
        startCond.wait(guard, [] { return started; });
    }
    int tmp = getState(mThd);
    if (tmp != THREAD_DETACHED)
        std::abort();
}

static void initThd()
{
    {
        std::lock_guard<std::mutex> guard(startLock);
        started = true;
    }
    mThd = &descriptor;
    startCond.notify_one();
}

int main()
{
    std::thread t(get);

    initThd();
    t.join();
    return 0;
}
