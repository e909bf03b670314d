/* hard/five_handoffs, fixed.
 * Wrong: two threads count x up in turns without a lock; the assertion fails only if they
 * alternate six times.
 * Fix: each thread does all its steps under the lock.
 * Origin: hard: a synthetic bug of known depth, for the guarantees of the schedulers */
#include <assert.h>
#include <pthread.h>

static volatile int x;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void advance(int from)
{
    if (x == from)
        x = from + 1;
}

static void *even(void *arg)
{
    pthread_mutex_lock(&lock);
    advance(0);
    advance(2);
    advance(4);
    assert(x != 6);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *odd(void *arg)
{
    pthread_mutex_lock(&lock);
    advance(1);
    advance(3);
    advance(5);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, even, NULL);
    pthread_create(&t2, NULL, odd, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
