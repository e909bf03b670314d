/* Two locks in both orders, with trylock and giving back. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int moved;
static void move(pthread_mutex_t *first, pthread_mutex_t *second)
{
    for (;;) {
        pthread_mutex_lock(first);
        if (pthread_mutex_trylock(second) == 0)
            break;
        pthread_mutex_unlock(first);
        sched_yield();
    }
    moved++;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}
static void *other(void *arg)
{
    move(&b, &a);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, other, NULL);
    move(&a, &b);
    pthread_join(t, NULL);
    assert(moved == 2);
    return 0;
}
