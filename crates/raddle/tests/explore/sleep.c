/* Sleeps instead of joining. */
#include <assert.h>
#include <pthread.h>
#include <time.h>

static volatile int result;

static void *work(void *arg)
{
    result = 55;
    return arg;
}

int main(void)
{
    pthread_t t;
    struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};

    pthread_create(&t, NULL, work, NULL);
    nanosleep(&pause, NULL);
    assert(result == 55);
    pthread_join(t, NULL);
    return 0;
}
