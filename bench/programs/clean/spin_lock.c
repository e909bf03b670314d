/* A test-and-set lock of atomics. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
static atomic_flag lock = ATOMIC_FLAG_INIT;
static int count;
static void *add(void *arg)
{
    for (int i = 0; i < 3; i++) {
        while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
            sched_yield();
        count++;
        atomic_flag_clear_explicit(&lock, memory_order_release);
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
