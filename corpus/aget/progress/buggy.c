/* aget/progress, buggy.
 * Wrong: the global sum is read, advanced and stored without a lock, so an update is lost.
 * Origin: Aget-0.4.1, new bug found by ConSeq: bwritten differs from the sum of
 * wthread[].bwritten (chapter 4.3.7) */
#include <pthread.h>

#define WORKERS 2

static struct {
    volatile int bwritten;
} wthread[WORKERS];
static volatile int bwritten;

static void *http_get(void *arg)
{
    int i = *(int *)arg;

    for (int block = 0; block < 4; block++) {
        int total;

        wthread[i].bwritten += 10;
        total = bwritten;
        total += 10;
        bwritten = total;
    }
    return NULL;
}

int main(void)
{
    static int number[WORKERS] = {0, 1};
    pthread_t t[WORKERS];
    int sum = 0;

    for (int i = 0; i < WORKERS; i++)
        pthread_create(&t[i], NULL, http_get, &number[i]);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < WORKERS; i++)
        sum += wthread[i].bwritten;
    return sum == bwritten ? 0 : 1;
}
