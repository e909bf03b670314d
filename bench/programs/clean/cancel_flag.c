/* A worker runs until it is told to stop; what it leaves is read after the join. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
static atomic_bool stop;
static int rounds;
static void *work(void *arg)
{
    do {
        rounds++;
        sched_yield();
    } while (!atomic_load(&stop) && rounds < 50);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, work, NULL);
    atomic_store(&stop, 1);
    pthread_join(t, NULL);
    assert(rounds >= 1);
    return 0;
}
