/* FFT in another spelling: the times are fetched by helpers, and the line is formatted into a private buffer before it is
   known to be right. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <raddle_oracle.h>

struct times { long start, end; };
static struct times transform;

static void *worker(void *unused)
{
    (void)unused;
    usleep(20000);
    __atomic_store_n(&transform.end, 1700, __ATOMIC_RELEASE);
    return NULL;
}

__attribute__((noinline)) static long start_of(const struct times *times)
{
    return times->start;
}

__attribute__((noinline)) static long end_of(const struct times *times)
{
    return __atomic_load_n(&times->end, __ATOMIC_ACQUIRE);
}

static void report(void)
{
    char line[64];
    long elapsed = end_of(&transform) - start_of(&transform);
    snprintf(line, sizeof line, "elapsed %ld", elapsed);
    raddle_oracle(elapsed >= 0); /* SITE */
    puts(line);
}

int main(void)
{
    pthread_t thread;
    transform.start = 1000;
    pthread_create(&thread, NULL, worker, NULL);
    report();
    pthread_join(thread, NULL);
    return 0;
}
