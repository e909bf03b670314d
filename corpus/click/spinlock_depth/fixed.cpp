// click/spinlock_depth, fixed.
// Wrong: the router thread says that it is done before it releases the lock; the master
// destroys the lock.
// Fix: the master joins the thread first.
// Origin: Click-1.8.0, a lock destroyed while it is held: assertion '_depth == 0' failed
// (ConSeq chapter 4.3.7: order violation without a data race)
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <thread>

class Spinlock {
  public:
    ~Spinlock() { assert(_depth.load() == 0); }
    void acquire()
    {
        _lock.lock();
        _depth.fetch_add(1);
    }
    void release()
    {
        _depth.fetch_sub(1);
        _lock.unlock();
    }

  private:
    std::mutex _lock;
    std::atomic<int> _depth{0};
};

static std::mutex masterLock;
static std::condition_variable masterCond;
static bool done;
static int packets;

static void routerThread(Spinlock *lock)
{
    lock->acquire();
    packets++;
    {
        std::lock_guard<std::mutex> guard(masterLock);
        done = true;
    }
    lock->release();
    masterCond.notify_one();
}

int main()
{
    Spinlock *lock = new Spinlock;
    std::thread t(routerThread, lock);

    {
        std::unique_lock<std::mutex> guard(masterLock);
        masterCond.wait(guard, [] { return done; });
    }
    t.join();
    delete lock;
    return packets == 1 ? 0 : 1;
}
