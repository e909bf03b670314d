// A thread looks for the second of two writes a bounded number of times, and counts how often in vain: in memory, if the
// compiler does not optimise. One preemption of the writer between its writes is enough for the assertion to fail.
#include <assert.h>
#include <pthread.h>
#ifdef YIELDS
#include <sched.h>
#else
#define sched_yield() (void)0
#endif
static volatile int first, second;
static void *write_both(void *a) {
    first = 1;
    second = 1;
    return a;
}
int main(void) {
    pthread_t thread;
    int misses = 0;
    pthread_create(&thread, 0, write_both, 0);
    while (!first)
        ;
    for (int i = 0; i < 8; i++) {
        if (!second)
            misses++;
        sched_yield();
    }
    assert(misses < 4);
    pthread_join(thread, 0);
    return 0;
}
