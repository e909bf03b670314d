/* HawkNL in another spelling: the second lock is taken two calls below the function that holds the first one. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER, socket_lock = PTHREAD_MUTEX_INITIALIZER;
static int closed, shut_down;
static pthread_barrier_t start;

__attribute__((noinline)) static int socket_count(int add)
{
    pthread_mutex_lock(&socket_lock); /* SITE */
    shut_down += add;
    int now = shut_down;
    pthread_mutex_unlock(&socket_lock);
    return now;
}

__attribute__((noinline)) static int driver_close(int step)
{
    closed += step;
    usleep(3000);
    return socket_count(0) >= 0;
}

static void *nl_close(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&driver_lock);
    closed += driver_close(1);
    pthread_mutex_unlock(&driver_lock);
    return NULL;
}

/* Its caller holds the other lock and did something that cannot be taken back: only nl_close can go back. */
static void nl_shutdown(void)
{
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&socket_lock);
    shut_down++;
    usleep(3000);
    (void)!write(1, "", 0);
    pthread_mutex_lock(&driver_lock);
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
    int all_closed = closed;
    pthread_mutex_unlock(&driver_lock);
    printf("closed %d shut down %d\n", all_closed, socket_count(0));
    return 0;
}
