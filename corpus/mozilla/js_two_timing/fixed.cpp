// mozilla/js_two_timing, fixed.
// Wrong: the last context to go frees the atom table after it has left the lock; a new first
// context fills the table in between, and its atoms go too. Two timings must both be hit:
// leave before enter, free between fill and use.
// Fix: the table is filled and freed in the critical section that counts the contexts.
// Origin: Mozilla JS-1.5, dangling pointer, multi-variable atomicity violation (ConMem Table
// 4.3)
#include <mutex>
#include <thread>

struct Atoms {
    const char *volatile name;
    explicit Atoms(const char *n) : name(n) {}
    ~Atoms() { name = nullptr; }
};

static std::mutex rtLock;
static int contexts;
static Atoms *volatile atoms;
static volatile char first;

static void newContext()
{
    std::unique_lock<std::mutex> guard(rtLock);
    bool firstOne = ++contexts == 1;
    if (firstOne)
        atoms = new Atoms("length");
}

static void destroyContext()
{
    std::unique_lock<std::mutex> guard(rtLock);
    bool lastOne = --contexts == 0;
    if (lastOne) {
        Atoms *old = atoms;
        atoms = nullptr;
        delete old;
    }
}

static void runScript()
{
    newContext();
    {
        std::lock_guard<std::mutex> guard(rtLock);
        first = atoms->name[0];
    }
    destroyContext();
}

int main()
{
    newContext();
    std::thread t1(destroyContext);
    std::thread t2(runScript);

    t1.join();
    t2.join();
    return 0;
}
