/* mysql/binlog_rotate, buggy.
 * Wrong: rotation sets the state to CLOSED and then to OPEN again; a statement that looks in
 * between is not logged.
 * Origin: MySQL-1, binary log misses a statement while the log is rotated (CTrigger Table 2;
 * ConSeq MySQL1; Fig. 3.5a, write-after-write) */
#include <pthread.h>

enum { LOG_CLOSED, LOG_OPEN };

static volatile int log_type = LOG_OPEN;
static volatile int executed, logged;

static void *rotate(void *arg)
{
    log_type = LOG_CLOSED;
    log_type = LOG_OPEN;
    return arg;
}

static void *statement(void *arg)
{
    executed++;
    if (log_type != LOG_CLOSED)
        logged++;
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
