/* A driver that is stopped while requests come in: a request counts itself in and then looks whether the driver is being
 * stopped. Wrong: the look and the count are two steps, so that the driver is gone when the request goes on. */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

static volatile int pending = 1;
static volatile bool is_stopping, is_stopped, has_ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

static int count_in(void)
{
    if (is_stopping)
        return -1;
    pthread_mutex_lock(&lock);
    pending++;
    pthread_mutex_unlock(&lock);
    return 0;
}

static void count_out(void)
{
    pthread_mutex_lock(&lock);
    if (--pending == 0) {
        has_ended = true;
        pthread_cond_signal(&ended);
    }
    pthread_mutex_unlock(&lock);
}

static void *dispatch(void *arg)
{
    if (count_in() == 0) {
        assert(!is_stopped);
        count_out();
    }
    return arg;
}

static void *stop(void *arg)
{
    is_stopping = true;
    count_out();
    pthread_mutex_lock(&lock);
    while (!has_ended)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
    is_stopped = true;
    return arg;
}

int main(void)
{
    pthread_t t[2];

    pthread_create(&t[0], NULL, stop, NULL);
    pthread_create(&t[1], NULL, dispatch, NULL);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    return 0;
}
