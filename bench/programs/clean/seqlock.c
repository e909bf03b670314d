/* A sequence lock over atomic halves. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
static atomic_uint sequence;
static atomic_int left, right;
static void *writer(void *arg)
{
    for (int i = 1; i <= 3; i++) {
        atomic_fetch_add(&sequence, 1);
        atomic_store(&left, i);
        atomic_store(&right, i);
        atomic_fetch_add(&sequence, 1);
    }
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, writer, NULL);
    for (int i = 0; i < 2; i++) {
        unsigned before;
        int l, r;
        do {
            while ((before = atomic_load(&sequence)) & 1)
                sched_yield();
            l = atomic_load(&left);
            r = atomic_load(&right);
        } while (atomic_load(&sequence) != before);
        assert(l == r);
    }
    pthread_join(t, NULL);
    return 0;
}
