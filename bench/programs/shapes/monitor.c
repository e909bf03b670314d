/* A monitor of a portable runtime: notifications are counted while the monitor is held and posted when it is left.
 * Wrong: who leaves gives up the lock first and posts then, by the fields of the monitor; the one that was waiting for
 * the last change may have gone on meanwhile, without having waited, and may have freed the monitor. */
#include <pthread.h>
#include <stdlib.h>

struct monitor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t owner;
    int entries, notifications;
};

static struct monitor *new_monitor(void)
{
    struct monitor *m = calloc(1, sizeof *m);

    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    return m;
}

static void enter(struct monitor *m)
{
    pthread_mutex_lock(&m->lock);
    m->owner = pthread_self();
    m->entries = 1;
}

static void leave(struct monitor *m)
{
    m->entries = 0;
    m->owner = 0;
    pthread_mutex_unlock(&m->lock);
    if (m->notifications > 0) {
        m->notifications = 0;
        pthread_cond_broadcast(&m->changed);
    }
}

static void await_change(struct monitor *m)
{
    m->entries = 0;
    pthread_cond_wait(&m->changed, &m->lock);
    m->entries = 1;
    m->owner = pthread_self();
}

static void notify(struct monitor *m)
{
    m->notifications++;
}

static struct monitor *monitor;
static int running = 2;

static void *worker(void *arg)
{
    enter(monitor);
    running--;
    notify(monitor);
    leave(monitor);
    return arg;
}

int main(void)
{
    pthread_t t[2];

    monitor = new_monitor();
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, worker, NULL);
    enter(monitor);
    while (running > 0)
        await_change(monitor);
    struct monitor *m = monitor;
    m->notifications = 0;
    leave(m);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    free(m);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
