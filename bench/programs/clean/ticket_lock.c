/* A ticket lock. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
static atomic_uint next, serving;
static int count;
static void *add(void *arg)
{
    for (int i = 0; i < 3; i++) {
        unsigned mine = atomic_fetch_add(&next, 1);
        while (atomic_load_explicit(&serving, memory_order_acquire) != mine)
            sched_yield();
        count++;
        atomic_store_explicit(&serving, mine + 1, memory_order_release);
    }
    return arg;
}
int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, add, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    assert(count == 9);
    return 0;
}
