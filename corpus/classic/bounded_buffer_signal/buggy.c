/* classic/bounded_buffer_signal, buggy.
 * Wrong: producers and consumers wait on the same condition; a consumer's signal wakes the
 * other consumer instead of the producer and everybody waits.
 * Origin: classic: bounded buffer with one condition for two purposes and signal instead of
 * broadcast */
#include <pthread.h>

#define ITEMS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int full, taken;

static void notify(void)
{
    pthread_cond_signal(&changed);
}

static void *producer(void *arg)
{
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (full)
            pthread_cond_wait(&changed, &lock);
        full = 1;
        notify();
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *consumer(void *arg)
{
    for (int i = 0; i < ITEMS / 2; i++) {
        pthread_mutex_lock(&lock);
        while (!full)
            pthread_cond_wait(&changed, &lock);
        full = 0;
        taken++;
        notify();
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

int main(void)
{
    pthread_t p, c[2];

    pthread_create(&p, NULL, producer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&c[i], NULL, consumer, NULL);
    pthread_join(p, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(c[i], NULL);
    return taken == ITEMS ? 0 : 1;
}
