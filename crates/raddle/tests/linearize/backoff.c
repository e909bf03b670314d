/* A counter behind a lock that is taken by trying. Buggy: a thread that does not get it at once turns in a loop for far too
 * long before it tries again; every result is right. */
#include <pthread.h>

#include "raddle.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long count;

#ifdef BUGGY
static void take(void)
{
    while (pthread_mutex_trylock(&lock))
        for (volatile long i = 0; i < 20000; i++)
            ;
}
#else
static void take(void)
{
    pthread_mutex_lock(&lock);
}
#endif

static void *adds(void *unused)
{
    raddle_begin("add");
    take();
    long result = ++count;
    pthread_mutex_unlock(&lock);
    raddle_result(result);
    raddle_end_operation();
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, 0, adds, 0);
    pthread_create(&two, 0, adds, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    raddle_probe("count");
    raddle_result(count);
    raddle_end_operation();
    return 0;
}
