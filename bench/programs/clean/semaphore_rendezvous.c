/* Two threads meet by two semaphores. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
static sem_t ping, pong;
static int turn;
static void *other(void *arg)
{
    for (int i = 0; i < 4; i++) {
        sem_wait(&ping);
        assert(turn == 2 * i + 1);
        turn++;
        sem_post(&pong);
    }
    return arg;
}
int main(void)
{
    pthread_t t;
    sem_init(&ping, 0, 0);
    sem_init(&pong, 0, 0);
    pthread_create(&t, NULL, other, NULL);
    for (int i = 0; i < 4; i++) {
        assert(turn == 2 * i);
        turn++;
        sem_post(&ping);
        sem_wait(&pong);
    }
    pthread_join(t, NULL);
    return 0;
}
