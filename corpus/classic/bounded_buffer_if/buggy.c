/* classic/bounded_buffer_if, buggy.
 * Wrong: a consumer that was woken does not look again; another consumer has taken the item in
 * between.
 * Origin: classic: bounded buffer that waits with if instead of while */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int count, taken;

static void *producer(void *arg)
{
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        count++;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *consumer(void *arg)
{
    pthread_mutex_lock(&lock);
    if (count == 0)
        pthread_cond_wait(&not_empty, &lock);
    assert(count > 0);
    count--;
    taken++;
    pthread_mutex_unlock(&lock);
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
    return taken == 2 ? 0 : 1;
}
