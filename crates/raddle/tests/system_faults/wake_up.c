/* A wait for a condition; with -DFIXED it is in a loop. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t set = PTHREAD_COND_INITIALIZER;
static int flag;

static void *setter(void *arg)
{
    pthread_mutex_lock(&lock);
    flag = 1;
    pthread_cond_signal(&set);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, setter, NULL);
    pthread_mutex_lock(&lock);
#ifdef FIXED
    while (!flag)
#else
    if (!flag)
#endif
        pthread_cond_wait(&set, &lock);
    assert(flag);
    pthread_mutex_unlock(&lock);
    pthread_join(t, NULL);
    return 0;
}
