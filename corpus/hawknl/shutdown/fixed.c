/* hawknl/shutdown, fixed.
 * Wrong: Close takes nlock and then slock, Shutdown takes slock and then nlock.
 * Fix: Shutdown takes the locks in the order of Close.
 * Origin: HawkNL, nlock and slock in opposite orders (ConAir Fig. 5.10) */
#include <pthread.h>

static pthread_mutex_t nlock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t slock = PTHREAD_MUTEX_INITIALIZER;
static int socket_in_use = 1;
static int *nSockets[1] = {&socket_in_use};
static volatile int driver_closed;

static void *Close(void *arg)
{
    pthread_mutex_lock(&nlock);
    driver_closed = 1;
    pthread_mutex_lock(&slock);
    nSockets[0] = NULL;
    pthread_mutex_unlock(&slock);
    pthread_mutex_unlock(&nlock);
    return arg;
}

static void *Shutdown(void *arg)
{
    pthread_mutex_lock(&nlock);
    pthread_mutex_lock(&slock);
    if (nSockets[0]) {
        *nSockets[0] = 0;
    }
    pthread_mutex_unlock(&slock);
    pthread_mutex_unlock(&nlock);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, Close, NULL);
    pthread_create(&t2, NULL, Shutdown, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
