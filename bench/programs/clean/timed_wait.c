/* A wait with a time limit that is tried again until the flag is set. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
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
    while (!flag) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        int error = pthread_cond_timedwait(&set, &lock, &until);
        assert(error == 0 || error == ETIMEDOUT);
    }
    pthread_mutex_unlock(&lock);
    pthread_join(t, NULL);
    return 0;
}
