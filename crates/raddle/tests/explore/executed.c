// One thread works for longer than a context's usual turn before it is ready, and another does not wait for it, which is
// noticed only after more work.
#include <assert.h>
#include <pthread.h>

static int is_ready, was_ready;

static void work(void) {
    for (volatile int i = 0; i < 40000; i++)
        ;
}

static void *prepares(void *a) {
    work();
    is_ready = 1;
    return a;
}

static void *uses(void *a) {
    was_ready = is_ready;
    return a;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, prepares, 0);
    pthread_create(&threads[1], 0, uses, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    work();
    assert(was_ready);
    return 0;
}
