/* httrack/global_opt, fixed.
 * Wrong: the interface thread is told to go before the pointer to the options is stored; it
 * dereferences NULL.
 * Fix: the pointer is stored before the thread is told to go.
 * Origin: HTTrack, options read by a thread before they are set (ConAir Table 5.2: order
 * violation, inter-procedural) */
#include <pthread.h>

struct options {
    int verbosity;
};

static struct options options = {2};
static struct options *volatile global_opt;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go_cond = PTHREAD_COND_INITIALIZER;
static int go;
static volatile int shown;

static int verbosity(const struct options *opt)
{
    return opt->verbosity;
}

static void *interface(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!go)
        pthread_cond_wait(&go_cond, &lock);
    pthread_mutex_unlock(&lock);
    shown = verbosity(global_opt);
    return arg;
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, interface, NULL);
    global_opt = &options;
    pthread_mutex_lock(&lock);
    go = 1;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&go_cond);
    pthread_join(t, NULL);
    return shown == 2 ? 0 : 1;
}
