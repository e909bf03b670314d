/* cobet/finished_thread, buggy.
 * Wrong: the stop waits for an acknowledgement that only the loop of a living thread gives;
 * the thread may have left its loop because the file system is closing.
 * Origin: Linux btrfs cleaner thread, waiting for a thread that has already finished (COBET
 * section 4.4, Fig. 13 and 14), as a user-mode model */
#include <pthread.h>
#include <sched.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;
static int should_stop, closing, done;

static void *cleaner(void *arg)
{
    int stop = 0, close = 0;

    while (!stop && !close) {
        pthread_mutex_lock(&lock);
        stop = should_stop;
        close = closing && !should_stop;
        pthread_mutex_unlock(&lock);
        if (!stop && !close)
            sched_yield();
    }
    if (stop) {
        pthread_mutex_lock(&lock);
        done = 1;
        pthread_cond_signal(&acknowledged);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void kthread_stop(void)
{
    pthread_mutex_lock(&lock);
    should_stop = 1;
    while (!done)
        pthread_cond_wait(&acknowledged, &lock);
    pthread_mutex_unlock(&lock);
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, cleaner, NULL);
    pthread_mutex_lock(&lock);
    closing = 1;
    pthread_mutex_unlock(&lock);
    kthread_stop();
    pthread_join(t, NULL);
    return 0;
}
