/* mysql/stop_slave, buggy.
 * Wrong: the slave thread announces itself and only then clears the stop request; a request
 * that comes in between is lost and the loop never ends.
 * Origin: MySQL4, infinite loop, an order violation with correct locking (ConSeq Table 4.10,
 * Fig. 4.1b) */
#include <pthread.h>
#include <sched.h>

static pthread_mutex_t run_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t start_cond = PTHREAD_COND_INITIALIZER;
static int slave_running, abort_slave;

static int stop_requested(void)
{
    int stop;

    pthread_mutex_lock(&run_lock);
    stop = abort_slave;
    pthread_mutex_unlock(&run_lock);
    return stop;
}

static void *slave(void *arg)
{
    pthread_mutex_lock(&run_lock);
    slave_running = 1;
    pthread_mutex_unlock(&run_lock);

    pthread_mutex_lock(&run_lock);
    abort_slave = 0;
    pthread_mutex_unlock(&run_lock);

    pthread_cond_signal(&start_cond);
    while (!stop_requested())
        sched_yield();
    return arg;
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, slave, NULL);
    pthread_mutex_lock(&run_lock);
    while (!slave_running)
        pthread_cond_wait(&start_cond, &run_lock);
    abort_slave = 1;
    pthread_mutex_unlock(&run_lock);
    pthread_join(t, NULL);
    return 0;
}
