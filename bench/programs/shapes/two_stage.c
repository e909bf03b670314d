/* N - 1 writers store a value under one lock and a value that follows from it under another; one reader takes
 * both locks, one after the other, and expects that the second value follows whenever the first is there. */
#include <assert.h>
#include <pthread.h>

#ifndef N
#define N 20
#endif

static pthread_mutex_t value_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t copy_lock = PTHREAD_MUTEX_INITIALIZER;
static int value, copy;

static void *writer(void *arg)
{
    pthread_mutex_lock(&value_lock);
    value = 1;
    pthread_mutex_unlock(&value_lock);

    pthread_mutex_lock(&copy_lock);
    copy = value + 1;
    pthread_mutex_unlock(&copy_lock);
    return arg;
}

static void *reader(void *arg)
{
    int seen, follows;

    pthread_mutex_lock(&value_lock);
    seen = value;
    pthread_mutex_unlock(&value_lock);
    if (seen == 0)
        return arg;

    pthread_mutex_lock(&copy_lock);
    follows = copy;
    pthread_mutex_unlock(&copy_lock);
    assert(follows == seen + 1);
    return arg;
}

int main(void)
{
    pthread_t t[N];

    for (int i = 0; i < N; i++)
        pthread_create(&t[i], NULL, i < N - 1 ? writer : reader, NULL);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    return 0;
}
