// A worker that is told to stop before it begins forgets it and works for ever: it hangs in every schedule. With FIXED,
// it forgets nothing.
#include <pthread.h>
#include <stdatomic.h>

static atomic_int stop;
static atomic_int work;

static void *worker(void *unused) {
#ifndef FIXED
    atomic_store(&stop, 0);
#endif
    while (!atomic_load(&stop))
        if (atomic_load(&work))
            atomic_store(&work, 0);
    return unused;
}

int main(void) {
    pthread_t thread;
    atomic_store(&stop, 1);
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
    return 0;
}
