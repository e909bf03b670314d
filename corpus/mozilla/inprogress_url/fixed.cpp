// mozilla/inprogress_url, fixed.
// Wrong: the URL is cleared before the flag that promises it; a thread that looks in between
// sees InProgress without a URL.
// Fix: the two variables change and are read under one lock.
// Origin: Mozilla, InProgress and runningUrl (ConSeq Moz1, Fig. 3.1, 3.2 and 4.1c: multi-
// variable atomicity violation)
#include <cassert>
#include <mutex>
#include <thread>

static volatile bool InProgress = true;
static const char *volatile runningUrl = "http://example.org/";
static std::mutex stateLock;

static void finish()
{
    std::lock_guard<std::mutex> guard(stateLock);
    runningUrl = nullptr; // S1
    InProgress = false;   // S2
}

static void ask()
{
    bool isBusy = false;

    std::lock_guard<std::mutex> guard(stateLock);
    if (InProgress) // S3
        isBusy = true;
    if (isBusy)
        assert(runningUrl != nullptr); // S4
}

int main()
{
    std::thread t1(finish);
    std::thread t2(ask);

    t1.join();
    t2.join();
    return 0;
}
