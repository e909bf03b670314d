/* Mozilla's JavaScript engine in another spelling: one side does not block but tries again and again. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t runtime_lock = PTHREAD_MUTEX_INITIALIZER, title_lock = PTHREAD_MUTEX_INITIALIZER;
static int requests, titles;
static pthread_barrier_t start;

static void *claim_title(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&title_lock);
    usleep(3000);
    while (pthread_mutex_trylock(&runtime_lock) == EBUSY)
        usleep(20);
    titles++;
    pthread_mutex_unlock(&runtime_lock);
    pthread_mutex_unlock(&title_lock);
    return NULL;
}

static void end_request(void)
{
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&runtime_lock);
    usleep(3000);
    pthread_mutex_lock(&title_lock); /* SITE */
    requests++;
    pthread_mutex_unlock(&title_lock);
    pthread_mutex_unlock(&runtime_lock);
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&start, NULL, 2);
    pthread_create(&thread, NULL, claim_title, NULL);
    end_request();
    pthread_join(thread, NULL);
    printf("requests %d titles %d\n", requests, titles);
    return 0;
}
