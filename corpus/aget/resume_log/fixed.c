/* aget/resume_log, fixed.
 * Wrong: a worker updates its own entry and the global sum in two steps; the signal thread
 * saves the state in between and the saved sum does not match the entries.
 * Fix: both steps and the save hold the same lock.
 * Origin: Aget-0.4.1, 11 threads and 21 shared variables (ConSeq Aget1, Fig. 4.16) */
#include <assert.h>
#include <pthread.h>

#define WORKERS 10
#define BLOCK 8

static struct {
    int offset, bwritten;
} wthread[WORKERS];
static int bwritten;
static pthread_mutex_t bwritten_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t wthread_mutex = PTHREAD_MUTEX_INITIALIZER;

static void *http_get(void *arg)
{
    int i = *(int *)arg;

    pthread_mutex_lock(&wthread_mutex);
    wthread[i].offset += BLOCK;
    wthread[i].bwritten += BLOCK;

    pthread_mutex_lock(&bwritten_mutex);
    bwritten += BLOCK;
    pthread_mutex_unlock(&bwritten_mutex);
    pthread_mutex_unlock(&wthread_mutex);
    return NULL;
}

static void *save_log(void *arg)
{
    int sum = 0, offsets = 0, total;

    pthread_mutex_lock(&wthread_mutex);
    pthread_mutex_lock(&bwritten_mutex);
    for (int i = 0; i < WORKERS; i++) {
        sum += wthread[i].bwritten;
        offsets += wthread[i].offset;
    }
    total = bwritten;
    pthread_mutex_unlock(&bwritten_mutex);
    pthread_mutex_unlock(&wthread_mutex);
    assert(total == sum && offsets == sum);
    return arg;
}

int main(void)
{
    static int number[WORKERS];
    pthread_t t[WORKERS], signal_thread;

    for (int i = 0; i < WORKERS; i++) {
        number[i] = i;
        pthread_create(&t[i], NULL, http_get, &number[i]);
    }
    pthread_create(&signal_thread, NULL, save_log, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    pthread_join(signal_thread, NULL);
    return 0;
}
