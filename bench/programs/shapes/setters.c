/* N - 1 like threads set two fields one after the other; one checker reads both.
 * Only between the two stores of the first setter is the pair wrong, since all store the same. */
#include <assert.h>
#include <pthread.h>

#ifndef N
#define N 10
#endif

static volatile int first, second;

static void *setter(void *arg)
{
    first = 1;
    second = -1;
    return arg;
}

static void *checker(void *arg)
{
    int a = first, b = second;

    assert((a == 0 && b == 0) || (a == 1 && b == -1));
    return arg;
}

int main(void)
{
    pthread_t t[N];

    for (int i = 0; i < N; i++)
        pthread_create(&t[i], NULL, i < N - 1 ? setter : checker, NULL);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    return 0;
}
