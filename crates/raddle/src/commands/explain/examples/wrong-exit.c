#include <pthread.h>

static int status = 1;

static void *work(void *unused)
{
    status = 0;
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_detach(thread);
    for (volatile int round = 0; round < 1000; round++) {
    }
    return status; /* nobody has waited for the work */
}
