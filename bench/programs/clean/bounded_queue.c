/* Two producers and two consumers over a bounded queue with two conditions. */
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER, has_items = PTHREAD_COND_INITIALIZER;
static int items[2], used, taken;
static void *produce(void *arg)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        while (used == 2)
            pthread_cond_wait(&has_room, &lock);
        items[used++] = i + 1;
        pthread_cond_signal(&has_items);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}
static void *consume(void *arg)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        while (used == 0)
            pthread_cond_wait(&has_items, &lock);
        taken += items[--used];
        pthread_cond_signal(&has_room);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}
int main(void)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, i % 2 ? produce : consume, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert(taken == 12 && used == 0);
    return 0;
}
