/* A recursive mutex that is taken twice by its owner. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int depth, most;
static void enter(int n)
{
    pthread_mutex_lock(&lock);
    depth++;
    if (depth > most)
        most = depth;
    if (n > 1)
        enter(n - 1);
    depth--;
    pthread_mutex_unlock(&lock);
}
static void *run(void *arg)
{
    enter(3);
    return arg;
}
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, run, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert(most == 3 && depth == 0);
    return 0;
}
