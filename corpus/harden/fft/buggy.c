/* FFT (SPLASH-2): the reader prints the duration before the worker has written the end of the transform.
   Order violation, wrong output. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <raddle_oracle.h>

static struct { long start, end; } transform;

static void *worker(void *unused)
{
    (void)unused;
    usleep(3000);
    __atomic_store_n(&transform.end, 1700, __ATOMIC_RELEASE);
    return NULL;
}

static void report(void)
{
    long start = transform.start;
    long end = __atomic_load_n(&transform.end, __ATOMIC_ACQUIRE);
    raddle_oracle(end >= start); /* SITE */
    printf("elapsed %ld\n", end - start);
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
