// Three transfers, each of which takes two of three locks, in a ring.
#include <pthread.h>

static pthread_mutex_t locks[3] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
};
static long moved;

static void *transfer(void *argument) {
    long from = (long)argument;
    long to = (from + 1) % 3;
    pthread_mutex_lock(&locks[from]);
    pthread_mutex_lock(&locks[to]);
    moved++;
    pthread_mutex_unlock(&locks[to]);
    pthread_mutex_unlock(&locks[from]);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, transfer, (void *)i);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
