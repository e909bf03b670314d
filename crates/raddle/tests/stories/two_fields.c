// Each field has its own critical section: a reader can see the new start with the old end.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int start, end;
} range = {0, 10};

static void *mover(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    range.start += 100;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    range.end += 100;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *checker(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    if (range.end - range.start != 10) {
        fprintf(stderr, "range is torn: %d..%d\n", range.start, range.end);
        abort();
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, mover, NULL);
    pthread_create(&two, NULL, checker, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
