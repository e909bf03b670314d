// mozilla/four_accesses, buggy.
// Wrong: a request is stored and read back, an abort reads the request and stores what it
// computed from it; only read, store, store, read back in this order is noticed.
// Origin: Moz3, atomicity violation of more than three accesses (ConSeq chapter 4.3.7)
#include <cstdio>
#include <mutex>
#include <thread>

static volatile int request;
static volatile int errors;

static void abortOld()
{
    int old = request;

    if (old == 0)
        request = -1;
}

static void startNew()
{
    request = 42;
    if (request != 42) {
        std::fputs("error: the new request was aborted\n", stderr);
        errors = 1;
    }
}

int main()
{
    std::thread t1(abortOld);
    std::thread t2(startNew);

    t1.join();
    t2.join();
    return errors;
}
