// A flag that a thread waits for without any call; the data behind it is ready before the flag is set.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int ready;
static int data;
static void *producer(void *a) {
    data = 42;
    atomic_store(&ready, 1);
    return a;
}
int main(void) {
    pthread_t a;
    pthread_create(&a, 0, producer, 0);
    while (!atomic_load(&ready))
        ;
    assert(data == 42);
    pthread_join(a, 0);
    return 0;
}
