/* Phases that are separated by a barrier. */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#define N 3
static pthread_barrier_t barrier;
static int value[N], sum[N];
static void *run(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (int phase = 0; phase < 2; phase++) {
        value[me] = me + phase;
        pthread_barrier_wait(&barrier);
        sum[me] = 0;
        for (int i = 0; i < N; i++)
            sum[me] += value[i];
        assert(sum[me] == 3 + N * phase);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}
int main(void)
{
    pthread_t t[N];
    pthread_barrier_init(&barrier, NULL, N);
    for (int i = 0; i < N; i++)
        pthread_create(&t[i], NULL, run, (void *)(intptr_t)i);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    return 0;
}
