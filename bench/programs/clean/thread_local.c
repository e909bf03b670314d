/* Each thread counts for itself; the sums are joined. */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
static _Thread_local int mine;
static void *count(void *arg)
{
    for (int i = 0; i < 5; i++)
        mine += (int)(intptr_t)arg;
    return (void *)(intptr_t)mine;
}
int main(void)
{
    pthread_t t[3];
    int sum = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, count, (void *)(intptr_t)i);
    for (int i = 0; i < 3; i++) {
        void *part;
        pthread_join(t[i], &part);
        sum += (int)(intptr_t)part;
    }
    assert(sum == 15 && mine == 0);
    return 0;
}
