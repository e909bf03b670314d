/* hard/five_handoffs, buggy.
 * Wrong: two threads count x up in turns without a lock; the assertion fails only if they
 * alternate six times.
 * Origin: hard: a synthetic bug of known depth, for the guarantees of the schedulers */
#include <assert.h>
#include <pthread.h>

static volatile int x;

static void advance(int from)
{
    if (x == from)
        x = from + 1;
}

static void *even(void *arg)
{
    advance(0);
    advance(2);
    advance(4);
    assert(x != 6);
    return arg;
}

static void *odd(void *arg)
{
    advance(1);
    advance(3);
    advance(5);
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
