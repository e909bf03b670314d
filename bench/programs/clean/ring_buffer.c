/* One producer and one consumer over a ring with acquire and release. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
static int cells[4];
static atomic_uint head, tail;
static void *produce(void *arg)
{
    for (int i = 1; i <= 8; i++) {
        unsigned t = atomic_load_explicit(&tail, memory_order_relaxed);
        while (t - atomic_load_explicit(&head, memory_order_acquire) == 4)
            sched_yield();
        cells[t % 4] = i;
        atomic_store_explicit(&tail, t + 1, memory_order_release);
    }
    return arg;
}
int main(void)
{
    pthread_t t;
    int sum = 0;
    pthread_create(&t, NULL, produce, NULL);
    for (int i = 0; i < 8; i++) {
        unsigned h = atomic_load_explicit(&head, memory_order_relaxed);
        while (atomic_load_explicit(&tail, memory_order_acquire) == h)
            sched_yield();
        sum += cells[h % 4];
        atomic_store_explicit(&head, h + 1, memory_order_release);
    }
    pthread_join(t, NULL);
    assert(sum == 36);
    return 0;
}
