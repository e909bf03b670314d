/* classic/dining_philosophers, buggy.
 * Wrong: everybody takes the left fork first, so that all three can hold one and wait for the
 * next.
 * Origin: classic: three dining philosophers */
#include <pthread.h>

#define N 3

static pthread_mutex_t fork_lock[N] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
};
static int meals[N];

static void *philosopher(void *arg)
{
    int me = *(int *)arg;
    int first = me, second = (me + 1) % N;

    pthread_mutex_lock(&fork_lock[first]);
    pthread_mutex_lock(&fork_lock[second]);
    meals[me]++;
    pthread_mutex_unlock(&fork_lock[second]);
    pthread_mutex_unlock(&fork_lock[first]);
    return NULL;
}

int main(void)
{
    static int number[N] = {0, 1, 2};
    pthread_t t[N];

    for (int i = 0; i < N; i++)
        pthread_create(&t[i], NULL, philosopher, &number[i]);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    return meals[0] + meals[1] + meals[2] == N ? 0 : 1;
}
