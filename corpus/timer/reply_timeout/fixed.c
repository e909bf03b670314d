/* timer/reply_timeout, fixed.
 * Wrong: the client gives up after 500 ms and withdraws its buffer; the server has looked at
 * the request before and writes to the buffer without looking again.
 * Fix: the server writes in the critical section in which it found the request.
 * Origin: timer: a reply that comes after the time-out */
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t replied = PTHREAD_COND_INITIALIZER;
static int *volatile buffer;
static int answered;

static void *server(void *arg)
{
    int wanted;

    pthread_mutex_lock(&lock);
    wanted = buffer != NULL;
    if (wanted) {
        *buffer = 42;
        answered = 1;
        pthread_cond_signal(&replied);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    pthread_t t;
    struct timespec deadline;
    int reply = 42, timed_out = 0;

    buffer = &reply;
    pthread_create(&t, NULL, server, NULL);
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += 500 * 1000 * 1000;
    if (deadline.tv_nsec >= 1000 * 1000 * 1000) {
        deadline.tv_nsec -= 1000 * 1000 * 1000;
        deadline.tv_sec++;
    }
    pthread_mutex_lock(&lock);
    while (!answered && !timed_out)
        timed_out = pthread_cond_timedwait(&replied, &lock, &deadline) != 0;
    buffer = NULL;
    pthread_mutex_unlock(&lock);
    pthread_join(t, NULL);
    return reply == 42 ? 0 : 1;
}
