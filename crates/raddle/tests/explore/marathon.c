/* Two threads count as far as they are told; then an assertion fails, whoever came first. For tests of going to and fro in
   long runs. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static long rounds;
static long counted[2];

static void *count(void *argument)
{
    long *own = argument;
    for (long round = 0; round < rounds; round++)
        *own += round;
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    rounds = argc > 1 ? atol(argv[1]) : 1000;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, count, &counted[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    assert(counted[0] + counted[1] < 0);
    return 0;
}
