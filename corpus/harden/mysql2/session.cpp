/* MySQL in another spelling: a class of the session asks itself twice, and a check of its own ends the program. */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>

[[noreturn]] __attribute__((noinline)) static void check_failed(const char *what)
{
    std::fprintf(stderr, "check failed: %s\n", what);
    std::abort();
}

#define CHECK(condition) ((condition) ? (void)0 : check_failed(#condition))

class Session {
public:
    int length() const { return query_length.load(); }
    void set(int to) { query_length.store(to); }

private:
    std::atomic<int> query_length{10};
};

static Session session;
static std::atomic<bool> reading{false}, written{false};

static int show_processlist()
{
    reading = true;
    int allocated = session.length();
    for (int i = 0; i < 100000000 && !written; i++)
        ;
    int copied = session.length();
    CHECK(copied <= allocated); /* SITE */
    return copied;
}

int main()
{
    std::thread other([] {
        while (!reading)
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        session.set(20);
        written = true;
    });
    int length = show_processlist();
    other.join();
    std::cout << "length " << length << "\n";
}
