/* classic/bluetooth, fixed.
 * Wrong: a request checks the stop flag and then counts itself in; the driver is stopped in
 * between and the request works on a stopped driver. All variables are atomic.
 * Fix: the request counts itself in before it checks the flag.
 * Origin: classic: Bluetooth driver stop flag (a standard example of context-bounded checking) */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int pending_io = 1, stopping_flag, stopped;
static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t event_cond = PTHREAD_COND_INITIALIZER;
static int stopping_event;

static void io_decrement(void)
{
    if (atomic_fetch_sub(&pending_io, 1) == 1) {
        pthread_mutex_lock(&event_lock);
        stopping_event = 1;
        pthread_cond_signal(&event_cond);
        pthread_mutex_unlock(&event_lock);
    }
}

static int io_increment(void)
{
    atomic_fetch_add(&pending_io, 1);
    if (atomic_load(&stopping_flag)) {
        io_decrement();
        return -1;
    }
    return 0;
}

static void *request(void *arg)
{
    if (io_increment() == 0) {
        assert(!atomic_load(&stopped));
        io_decrement();
    }
    return arg;
}

static void *stop(void *arg)
{
    atomic_store(&stopping_flag, 1);
    io_decrement();
    pthread_mutex_lock(&event_lock);
    while (!stopping_event)
        pthread_cond_wait(&event_cond, &event_lock);
    pthread_mutex_unlock(&event_lock);
    atomic_store(&stopped, 1);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, request, NULL);
    pthread_create(&t2, NULL, stop, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
