/* The shared value is read, something is printed, and only then it is checked: the region after the output holds
   nothing to repeat. Must fail as before, with the line printed once. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ready;

static void *prepare(void *unused)
{
    (void)unused;
    usleep(5000);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, prepare, NULL);
    int seen = __atomic_load_n(&ready, __ATOMIC_ACQUIRE);
    puts("about to check");
    fflush(stdout);
    assert(seen);
    pthread_join(thread, NULL);
    return 0;
}
