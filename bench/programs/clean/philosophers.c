/* Four philosophers who take the lower fork first. */
#include <pthread.h>
#include <stdint.h>
#define N 4
static pthread_mutex_t fork_[N];
static int meals[N];
static void *dine(void *arg)
{
    int me = (int)(intptr_t)arg, a = me, b = (me + 1) % N;
    if (a > b) {
        int x = a;
        a = b;
        b = x;
    }
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&fork_[a]);
        pthread_mutex_lock(&fork_[b]);
        meals[me]++;
        pthread_mutex_unlock(&fork_[b]);
        pthread_mutex_unlock(&fork_[a]);
    }
    return NULL;
}
int main(void)
{
    pthread_t t[N];
    for (int i = 0; i < N; i++)
        pthread_mutex_init(&fork_[i], NULL);
    for (int i = 0; i < N; i++)
        pthread_create(&t[i], NULL, dine, (void *)(intptr_t)i);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    return meals[0] == 2 && meals[3] == 2 ? 0 : 1;
}
