/* HawkNL in another spelling: both locks are taken by helpers, as in the library's own nlMutexLock, and what the lock
   guards is written between the two locks. Both threads can be re-executed, from the log. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER, socket_lock = PTHREAD_MUTEX_INITIALIZER;
static int closed, shut_down;
static pthread_barrier_t start;

__attribute__((noinline)) static void lock_driver(void)
{
    pthread_mutex_lock(&driver_lock);
}

__attribute__((noinline)) static void lock_socket(void)
{
    pthread_mutex_lock(&socket_lock); /* SITE */
}

static void *nl_close(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    lock_driver();
    closed++;
    usleep(3000);
    lock_socket();
    shut_down += 0;
    pthread_mutex_unlock(&socket_lock);
    closed++;
    pthread_mutex_unlock(&driver_lock);
    return NULL;
}

static void nl_shutdown(void)
{
    pthread_barrier_wait(&start);
    lock_socket();
    shut_down++;
    usleep(3000);
    lock_driver();
    closed += 0;
    pthread_mutex_unlock(&driver_lock);
    pthread_mutex_unlock(&socket_lock);
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&start, NULL, 2);
    pthread_create(&thread, NULL, nl_close, NULL);
    nl_shutdown();
    pthread_join(thread, NULL);
    pthread_mutex_lock(&driver_lock);
    pthread_mutex_lock(&socket_lock);
    int all_closed = closed, all_shut = shut_down;
    pthread_mutex_unlock(&socket_lock);
    pthread_mutex_unlock(&driver_lock);
    printf("closed %d shut down %d\n", all_closed, all_shut);
    return 0;
}
