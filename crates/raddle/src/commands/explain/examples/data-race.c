#include <pthread.h>
#include <stdio.h>

static long total;

static void *add(void *unused)
{
    total += 1; /* nothing orders it with the same line of the other thread */
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, add, NULL);
    pthread_create(&two, NULL, add, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
