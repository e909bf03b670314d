/* Each of two threads makes a block; with -DFIXED it looks at what it was given. */
#include <pthread.h>
#include <stdlib.h>

static void *make(void *arg)
{
    volatile int *block = malloc(4 * sizeof *block);

#ifdef FIXED
    if (!block)
        return NULL;
#endif
    block[0] = 1;
    free((void *)block);
    return arg;
}

int main(void)
{
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, make, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
