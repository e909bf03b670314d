/* HawkNL: nlClose takes the driver lock and then the socket lock, nlShutdown the other way round. Deadlock.
   Only the second one can be re-executed: the first calls the driver in between. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER, socket_lock = PTHREAD_MUTEX_INITIALIZER;
static int sockets[4] = {1, 1, 1, 1};
static int *open_sockets = sockets;
static int closed, shut_down, closing, shutting_down;

/* Forces the order of the failure. */
static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void driver_close(void)
{
    __atomic_store_n(&closing, 1, __ATOMIC_RELEASE);
    wait_for(&shutting_down);
    usleep(2000);
    closed++;
}

static void (*driver)(void) = driver_close;

static void *nl_close(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&driver_lock);
    driver();
    pthread_mutex_lock(&socket_lock);
    closed++;
    pthread_mutex_unlock(&socket_lock);
    pthread_mutex_unlock(&driver_lock);
    return NULL;
}

static void nl_shutdown(void)
{
    pthread_mutex_lock(&socket_lock);
    if (open_sockets != NULL) {
        int i = 0;
        if (open_sockets[i]) {
            pthread_mutex_lock(&driver_lock); /* SITE */
            shut_down++;
            pthread_mutex_unlock(&driver_lock);
        }
    }
    pthread_mutex_unlock(&socket_lock);
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, nl_close, NULL);
    wait_for(&closing);
    __atomic_store_n(&shutting_down, 1, __ATOMIC_RELEASE);
    nl_shutdown();
    pthread_join(thread, NULL);
    printf("closed %d shut down %d\n", closed, shut_down);
    return 0;
}
