/* A small concurrent test of about 100,000 instructions after the first thread is created. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter, table[64];
static void *work(void *argument) {
    for (long i = 0; i < 250; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        for (int k = 0; k < 16; k++) table[(i + k) % 64] += (long)argument;
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    assert(counter == 500);
    printf("%ld\n", table[7]);
}
