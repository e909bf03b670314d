/* Two bugs that end with the same status: updates of `hits` and of `bytes` can be lost. */
#include <pthread.h>

static int hits, bytes;

static void *count_hits(void *arg)
{
    int old = hits;
    hits = old + 1;
    return arg;
}

static void *count_bytes(void *arg)
{
    int old = bytes;
    bytes = old + 1;
    return arg;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, i < 2 ? count_hits : count_bytes, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    return hits == 2 && bytes == 2 ? 0 : 1;
}
