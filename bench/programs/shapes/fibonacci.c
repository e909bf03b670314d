/* Two threads add each other's variable K times; only the exact alternation reaches the Fibonacci number. */
#include <assert.h>
#include <pthread.h>

#ifndef K
#define K 5
#endif

static volatile int i = 1, j = 1;

static void *first(void *arg)
{
    for (int k = 0; k < K; k++)
        i += j;
    return arg;
}

static void *second(void *arg)
{
    for (int k = 0; k < K; k++)
        j += i;
    return arg;
}

static int fibonacci(int n)
{
    int a = 0, b = 1;

    while (n-- > 0) {
        int next = a + b;
        a = b;
        b = next;
    }
    return a;
}

int main(void)
{
    pthread_t t[2];
    int most = fibonacci(2 * K + 2);

    pthread_create(&t[0], NULL, first, NULL);
    pthread_create(&t[1], NULL, second, NULL);
    int seen_i = i, seen_j = j;
    assert(seen_i < most && seen_j < most);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    assert(i < most && j < most);
    return 0;
}
