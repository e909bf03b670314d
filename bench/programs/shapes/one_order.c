/* N like threads pass a gate, and only the order in which the last to be created comes first, down to the first one, is
 * wrong. */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#ifndef N
#define N 50
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int passed;

static void *passer(void *arg)
{
    int me = (int)(intptr_t)arg;

    pthread_mutex_lock(&lock);
    if (passed == N - 1 - me)
        passed++;
    assert(passed < N);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    pthread_t t[N];

    for (int i = 0; i < N; i++)
        pthread_create(&t[i], NULL, passer, (void *)(intptr_t)i);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    return 0;
}
