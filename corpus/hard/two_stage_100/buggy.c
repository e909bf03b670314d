/* hard/two_stage_100, buggy.
 * Wrong: the two variables have a lock each and are updated one after the other; the reader
 * fails only between the stages of the first writer. No data race.
 * Origin: hard: two-stage locking among 100 threads (the twostage benchmarks of the
 * systematic-testing literature) */
#include <assert.h>
#include <pthread.h>

#define WRITERS 99

static pthread_mutex_t lock1 = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock2 = PTHREAD_MUTEX_INITIALIZER;
static int data1, data2;

static void *writer(void *arg)
{
    int seen;

    pthread_mutex_lock(&lock1);
    data1 = 1;
    seen = data1;
    pthread_mutex_unlock(&lock1);

    pthread_mutex_lock(&lock2);
    data2 = seen + 1;
    pthread_mutex_unlock(&lock2);
    return arg;
}

static void *reader(void *arg)
{
    int seen1, seen2;

    pthread_mutex_lock(&lock1);
    seen1 = data1;
    pthread_mutex_unlock(&lock1);
    if (seen1 == 0)
        return arg;

    pthread_mutex_lock(&lock2);
    seen2 = data2;
    pthread_mutex_unlock(&lock2);
    assert(seen2 == seen1 + 1);
    return arg;
}

int main(void)
{
    pthread_t t[WRITERS + 1];

    for (int i = 0; i < WRITERS; i++)
        pthread_create(&t[i], NULL, writer, NULL);
    pthread_create(&t[WRITERS], NULL, reader, NULL);
    for (int i = 0; i <= WRITERS; i++)
        pthread_join(t[i], NULL);
    return 0;
}
