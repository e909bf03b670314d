/* ring_index, fixed.
 * Wrong: two producers test the fill mark of a heap buffer and use it afterwards; the mark moves
 * in between, and the last sample is written behind the buffer.
 * Fix: test, write and advance are one critical section. */
#include <pthread.h>
#include <stdlib.h>

#define ROOM 3

static long *samples;
static volatile unsigned used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(long sample)
{
    pthread_mutex_lock(&lock);
    if (used < ROOM) {
        samples[used] = sample;
        used = used + 1;
    }
    pthread_mutex_unlock(&lock);
}

static void *producer(void *arg)
{
    long base = *(long *)arg;

    put(base);
    put(base + 1);
    return NULL;
}

int main(void)
{
    static long first = 10, second = 20;
    pthread_t t1, t2;

    samples = malloc(ROOM * sizeof *samples);
    pthread_create(&t1, NULL, producer, &first);
    pthread_create(&t2, NULL, producer, &second);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    free(samples);
    return 0;
}
