// SQLite in another spelling: C++ with guards, one mutex recursive and one shared.
#include <cstdio>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <pthread.h>
#include <unistd.h>

static std::recursive_mutex connection;
static std::shared_mutex cache;
static int pages, statements;
static pthread_barrier_t start;

static void checkpoint()
{
    pthread_barrier_wait(&start);
    std::unique_lock<std::shared_mutex> outer(cache);
    usleep(3000);
    std::lock_guard<std::recursive_mutex> inner(connection);
    pages += 2;
}

static void step()
{
    pthread_barrier_wait(&start);
    std::lock_guard<std::recursive_mutex> outer(connection);
    usleep(3000);
    std::shared_lock<std::shared_mutex> inner(cache); // SITE
    statements += 1;
}

int main()
{
    pthread_barrier_init(&start, nullptr, 2);
    std::thread other(checkpoint);
    step();
    other.join();
    std::printf("pages %d statements %d\n", pages, statements);
    return 0;
}
