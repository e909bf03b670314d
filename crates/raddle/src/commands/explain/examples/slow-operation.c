#include <pthread.h>

#include "raddle.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long count;

static long add(void)
{
    while (pthread_mutex_trylock(&lock)) /* whoever does not get it at once waits far too long */
        for (volatile int round = 0; round < 20000; round++) {
        }
    long result = ++count;
    pthread_mutex_unlock(&lock);
    return result;
}

static void *client(void *unused)
{
    raddle_begin("add");
    raddle_result(add());
    raddle_end_operation();
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, client, NULL);
    pthread_create(&two, NULL, client, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
