// Two consumers test with `if` and not with `while`: a third thread can take the item before a woken one has the lock.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items;

static void *consumer(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    if (items == 0) {
        pthread_cond_wait(&filled, &lock);
    }
    items--;
    assert(items >= 0);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *producer(void *argument) {
    (void)argument;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        items++;
        pthread_cond_broadcast(&filled);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t one, two, three;
    pthread_create(&one, NULL, consumer, NULL);
    pthread_create(&two, NULL, consumer, NULL);
    pthread_create(&three, NULL, producer, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    pthread_join(three, NULL);
    return 0;
}
