#include <pthread.h>
#include <stdatomic.h>

static atomic_int stop;

static void *poll(void *unused)
{
    if (!atomic_load(&stop))
        atomic_store(&stop, 0); /* forgets that it may have been told to stop since the test */
    while (!atomic_load(&stop)) {
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, poll, NULL);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    return 0;
}
