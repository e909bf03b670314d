// A loop that waits, and counts in memory how often it looked: there is an end to its patience.
#include <assert.h>
#include <pthread.h>
static volatile int begun, flag;
static volatile unsigned tries;
static void *setter(void *a) {
    begun = 1;
    flag = 1;
    return a;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, setter, 0);
    while (!begun)
        ;
    while (!flag)
        tries++;
    assert(tries < 5);
    pthread_join(thread, 0);
    return 0;
}
