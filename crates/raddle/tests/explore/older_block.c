// A request that is older than both threads: the one that uses it takes it under the lock and uses it afterwards, the
// other one withdraws it. With FIXED, it is used under the lock.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct request {
    int state;
    int answer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct request *pending;

static void *withdraw(void *unused) {
    usleep(1000);
    pthread_mutex_lock(&lock);
    free(pending);
    pending = NULL;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *serve(void *unused) {
    pthread_mutex_lock(&lock);
    struct request *request = pending;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
#endif
    if (request) {
        request->answer = 42;
        request->state = 1;
    }
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return unused;
}

int main(void) {
    pthread_t withdrawing, serving;
    pending = calloc(1, sizeof *pending);
    pthread_create(&withdrawing, NULL, withdraw, NULL);
    pthread_create(&serving, NULL, serve, NULL);
    pthread_join(withdrawing, NULL);
    pthread_join(serving, NULL);
    return 0;
}
