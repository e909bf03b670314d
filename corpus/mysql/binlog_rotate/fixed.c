/* mysql/binlog_rotate, fixed.
 * Wrong: rotation sets the state to CLOSED and then to OPEN again; a statement that looks in
 * between is not logged.
 * Fix: rotation and the writer hold the log's lock.
 * Origin: MySQL-1, binary log misses a statement while the log is rotated (CTrigger Table 2;
 * ConSeq MySQL1; Fig. 3.5a, write-after-write) */
#include <pthread.h>

enum { LOG_CLOSED, LOG_OPEN };

static volatile int log_type = LOG_OPEN;
static volatile int executed, logged;
static pthread_mutex_t lock_log = PTHREAD_MUTEX_INITIALIZER;

static void *rotate(void *arg)
{
    pthread_mutex_lock(&lock_log);
    log_type = LOG_CLOSED;
    log_type = LOG_OPEN;
    pthread_mutex_unlock(&lock_log);
    return arg;
}

static void *statement(void *arg)
{
    executed++;
    pthread_mutex_lock(&lock_log);
    if (log_type != LOG_CLOSED)
        logged++;
    pthread_mutex_unlock(&lock_log);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, rotate, NULL);
    pthread_create(&t2, NULL, statement, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return logged == executed ? 0 : 1;
}
