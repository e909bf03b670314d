#include <assert.h>
#include <pthread.h>
#include <x86intrin.h>

/* Two readings of the clock without a word of shared memory between them: nobody else's access is ever met there. */
static void *measure(void *a) {
    unsigned long long before = __rdtsc();
    unsigned long long after = __rdtsc();
    assert(after - before < 1000);
    return a;
}
static void *compute(void *a) {
    for (volatile int i = 0; i < 1000; i++)
        ;
    return a;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, measure, 0);
    pthread_create(&two, 0, compute, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
