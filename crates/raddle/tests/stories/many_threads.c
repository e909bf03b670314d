// Sixty threads are made in a loop; the last of them may count before the first has set the limit.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 60 };

static int limit;
static int counted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *first(void *argument) {
    (void)argument;
    limit = 100;
    return NULL;
}

static void *count(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    if (counted >= limit) {
        puts("limit reached");
        exit(2);
    }
    counted++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, i == 0 ? first : count, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
