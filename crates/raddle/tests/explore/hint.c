#include <assert.h>
#include <pthread.h>

#include "raddle.h"

static long ready, balance = 100;
static void *set_up(void *a) { ready = ready + 1; return a; }
static void *deposit(void *a) { balance = balance + 50; return a; }

static void twice(void *(*what)(void *)) {
    pthread_t one, two;
    pthread_create(&one, 0, what, 0);
    pthread_create(&two, 0, what, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
}

int main(void) {
    twice(set_up);
    assert(ready == 2);
    raddle_snapshot();
    twice(deposit);
    assert(balance == 200);
    return 0;
}
