/* timer/alarm_lock, fixed.
 * Wrong: the alarm may arrive while the interrupted code holds the lock that the handler
 * takes.
 * Fix: the handler only sets a flag.
 * Origin: timer: a signal handler that takes a lock */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int updates;
static volatile sig_atomic_t alarms;

static void on_alarm(int signal)
{
    (void)signal;
    alarms++;
}

static void update(void)
{
    pthread_mutex_lock(&lock);
    updates++;
    pthread_mutex_unlock(&lock);
}

static void *work(void *arg)
{
    for (int i = 0; i < 5; i++)
        update();
    return arg;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval in_half_a_second = {.it_value = {.tv_usec = 500 * 1000}}, off = {0};
    sigset_t set;
    pthread_t t;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* the worker never gets the alarm */
    pthread_create(&t, NULL, work, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &in_half_a_second, NULL);
    for (int i = 0; i < 5; i++)
        update();
    setitimer(ITIMER_REAL, &off, NULL);
    pthread_join(t, NULL);
    return updates == 10 ? 0 : 1;
}
