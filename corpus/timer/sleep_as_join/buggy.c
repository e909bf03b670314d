/* timer/sleep_as_join, buggy.
 * Wrong: the main thread sleeps for 200 ms and takes the worker's result for ready.
 * Origin: timer: sleeping instead of joining */
#include <assert.h>
#include <pthread.h>
#include <time.h>

static volatile int result;

static void *work(void *arg)
{
    int sum = 0;

    for (int i = 1; i <= 10; i++)
        sum += i;
    result = sum;
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
