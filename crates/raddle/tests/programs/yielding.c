/* Two threads yield until a third one, which sleeps for 400 milliseconds, has done its work. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int done;

static void *work(void *argument)
{
    usleep(400000);
    atomic_store(&done, 1);
    return argument;
}

static void *wait(void *argument)
{
    while (!atomic_load(&done))
        sched_yield();
    return argument;
}

int main(void)
{
    pthread_t worker, waiter;

    pthread_create(&worker, 0, work, 0);
    pthread_create(&waiter, 0, wait, 0);
    wait(0);
    pthread_join(worker, 0);
    pthread_join(waiter, 0);
    return 0;
}
