#include <pthread.h>
#include <stdlib.h>

static int *job;

static void *work(void *unused)
{
    *job = 1; /* main may have freed it */
    return unused;
}

int main(void)
{
    pthread_t thread;
    job = malloc(sizeof *job);
    pthread_create(&thread, NULL, work, NULL);
    free(job);
    pthread_join(thread, NULL);
    return 0;
}
