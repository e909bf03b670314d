/* openoffice/load_hang, buggy.
 * Wrong: the dialog posts its request and then marks itself as waiting, relying on the loader
 * to finish later; a loader that finishes first has its answer overwritten. Everything is
 * locked.
 * Origin: OpenOffice, infinite loop by anti-atomicity (ConSeq OO, Table 4.10) */
#include <pthread.h>
#include <sched.h>

enum { IDLE, WAITING, DONE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t requested = PTHREAD_COND_INITIALIZER;
static int request, state = IDLE;

static void *loader(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!request)
        pthread_cond_wait(&requested, &lock);
    state = DONE; /* S2 */
    pthread_mutex_unlock(&lock);
    return arg;
}

static int current_state(void)
{
    int s;

    pthread_mutex_lock(&lock);
    s = state;
    pthread_mutex_unlock(&lock);
    return s;
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, loader, NULL);
    pthread_mutex_lock(&lock);
    request = 1;
    pthread_mutex_unlock(&lock);

    pthread_mutex_lock(&lock);
    state = WAITING; /* S1 */
    pthread_mutex_unlock(&lock);

    pthread_cond_signal(&requested);
    while (current_state() != DONE) /* S3 */
        sched_yield();
    pthread_join(t, NULL);
    return 0;
}
