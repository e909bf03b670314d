/* A block is freed while somebody may still read it; the order of the two decides. */
#include <pthread.h>
#include <stdlib.h>

static int *volatile block;
static volatile int seen;

static void *reader(void *arg)
{
    seen = *block;
    return arg;
}

static void *owner(void *arg)
{
    free(block);
    return arg;
}

int main(void)
{
    pthread_t t[2];

    block = calloc(16, sizeof *block);
    pthread_create(&t[0], NULL, reader, NULL);
    pthread_create(&t[1], NULL, owner, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
