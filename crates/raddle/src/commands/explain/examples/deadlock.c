#include <pthread.h>

static pthread_mutex_t account = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;

static void *pay(void *unused)
{
    pthread_mutex_lock(&account);
    pthread_mutex_lock(&journal);
    pthread_mutex_unlock(&journal);
    pthread_mutex_unlock(&account);
    return unused;
}

static void *audit(void *unused)
{
    pthread_mutex_lock(&journal); /* the other way round */
    pthread_mutex_lock(&account);
    pthread_mutex_unlock(&account);
    pthread_mutex_unlock(&journal);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, pay, NULL);
    audit(NULL);
    pthread_join(thread, NULL);
    return 0;
}
