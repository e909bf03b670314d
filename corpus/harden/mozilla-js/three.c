/* Mozilla's JavaScript engine in another spelling: a cycle of three locks and three threads; one of the locks is a
   reader-writer lock. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t runtime_lock = PTHREAD_MUTEX_INITIALIZER, title_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t scope_lock = PTHREAD_RWLOCK_INITIALIZER;
static int requests, titles, scopes;
static pthread_barrier_t start;

static void *claim_title(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&title_lock);
    usleep(3000);
    pthread_mutex_lock(&runtime_lock); /* SITE */
    titles++;
    pthread_mutex_unlock(&runtime_lock);
    pthread_mutex_unlock(&title_lock);
    return NULL;
}

static void *share_scope(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&runtime_lock);
    usleep(3000);
    pthread_rwlock_wrlock(&scope_lock);
    scopes++;
    pthread_rwlock_unlock(&scope_lock);
    pthread_mutex_unlock(&runtime_lock);
    return NULL;
}

static void end_request(void)
{
    pthread_barrier_wait(&start);
    pthread_rwlock_rdlock(&scope_lock);
    usleep(3000);
    pthread_mutex_lock(&title_lock);
    requests++;
    pthread_mutex_unlock(&title_lock);
    pthread_rwlock_unlock(&scope_lock);
}

int main(void)
{
    pthread_t claimer, sharer;
    pthread_barrier_init(&start, NULL, 3);
    pthread_create(&claimer, NULL, claim_title, NULL);
    pthread_create(&sharer, NULL, share_scope, NULL);
    end_request();
    pthread_join(claimer, NULL);
    pthread_join(sharer, NULL);
    printf("requests %d titles %d\n", requests, titles);
    return scopes - 1;
}
