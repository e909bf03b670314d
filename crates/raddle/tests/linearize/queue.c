/* A queue whose pop() waits for something to be there: two producers with two values each, a consumer. Buggy: one slot
 * is taken with two instructions that others can come between. */
#include <pthread.h>

#include "raddle.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static volatile long items[16], first, last;

static void push(long value)
{
#ifdef BUGGY
    long at = last;
    pthread_mutex_lock(&lock);
#else
    pthread_mutex_lock(&lock);
    long at = last;
#endif
    items[at] = value;
    last = at + 1;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

static long pop(void)
{
    pthread_mutex_lock(&lock);
    while (first == last)
        pthread_cond_wait(&filled, &lock);
    long value = items[first++];
    pthread_mutex_unlock(&lock);
    return value;
}

static void *produces(void *base)
{
    for (long i = 0; i < 2; i++) {
        raddle_begin("push");
        raddle_argument((long)base + i);
        push((long)base + i);
        raddle_end_operation();
    }
    return 0;
}

static void *consumes(void *unused)
{
    raddle_begin("pop");
    raddle_result(pop());
    raddle_end_operation();
    return unused;
}

int main(void)
{
    pthread_t a, b, c;
    pthread_create(&a, 0, produces, (void *)10);
    pthread_create(&b, 0, produces, (void *)20);
    pthread_create(&c, 0, consumes, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    pthread_join(c, 0);
    raddle_probe("left");
    for (long at = first; at < last; at++)
        raddle_result(items[at]);
    raddle_end_operation();
    return 0;
}
