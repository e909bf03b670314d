/* Four threads increment one counter under one mutex. */
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static void *work(void *unused) {
    for (int i = 0; i < 400000; i++) { pthread_mutex_lock(&mutex); counter++; pthread_mutex_unlock(&mutex); }
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    printf("%ld\n", counter);
}
