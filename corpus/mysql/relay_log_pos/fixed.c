/* mysql/relay_log_pos, fixed.
 * Wrong: the slave sets pos (S1) and later reads the log at pos (S3), relying on the master to
 * have set pos in between (S2); all three are locked, and S2 may come after S3.
 * Fix: the master sets pos before it counts the event.
 * Origin: MySQL2, relay-log position, anti-atomicity (ConSeq Fig. 4.15) */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t event_ready = PTHREAD_COND_INITIALIZER;
static int pos_in_file = 4, pos, req_pos = 100, events;

static void *master(void *arg)
{
    pthread_mutex_lock(&log_lock);
    pos = req_pos - pos_in_file; /* S2 */
    pthread_mutex_unlock(&log_lock);

    pthread_mutex_lock(&log_lock);
    events++;
    pthread_mutex_unlock(&log_lock);

    pthread_cond_signal(&event_ready);
    return arg;
}

static void read_event(void)
{
    pthread_mutex_lock(&log_lock);
    while (events == 0)
        pthread_cond_wait(&event_ready, &log_lock);
    events--;
    pthread_mutex_unlock(&log_lock);

    pthread_mutex_lock(&log_lock);
    assert(pos_in_file + pos == req_pos); /* S3 */
    pthread_mutex_unlock(&log_lock);
}

int main(void)
{
    pthread_t t;

    pthread_mutex_lock(&log_lock);
    pos = 0; /* S1 */
    pthread_mutex_unlock(&log_lock);
    pthread_create(&t, NULL, master, NULL);
    read_event();
    pthread_join(t, NULL);
    return 0;
}
