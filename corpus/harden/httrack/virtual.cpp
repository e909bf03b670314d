/* HTTrack in another spelling: the options are an object with virtual functions, so that the first use of the missing
   pointer is the read of its table. */
#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

struct Options {
    virtual ~Options() = default;
    virtual int depth() const = 0;
};

struct Chosen : Options {
    int depth() const override { return 9; }
};

static Chosen chosen;
static Options *global_options;
static std::atomic<bool> started{false};
static int crawled;

static void crawl()
{
    started = true;
    int limit = global_options->depth() * 10; /* SITE */
    crawled = limit;
}

int main()
{
    std::thread crawler(crawl);
    while (!started)
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    __atomic_store_n(&global_options, &chosen, __ATOMIC_RELEASE);
    crawler.join();
    std::cout << "crawled " << crawled << "\n";
}
