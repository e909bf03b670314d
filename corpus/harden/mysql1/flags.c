/* MySQL in another spelling: the state of the log is a bit of a word of flags, and the record of the query is allocated
   and formatted before it is known to reach an open log. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <raddle_oracle.h>

enum { LOG_OPEN = 1, LOG_SYNCED = 2 };
static unsigned log_flags = LOG_OPEN | LOG_SYNCED;
static int rotating;

static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void *rotate(void *unused)
{
    (void)unused;
    __atomic_and_fetch(&log_flags, ~(unsigned)LOG_OPEN, __ATOMIC_SEQ_CST);
    __atomic_store_n(&rotating, 1, __ATOMIC_RELEASE);
    usleep(4000);
    __atomic_or_fetch(&log_flags, LOG_OPEN, __ATOMIC_SEQ_CST);
    return NULL;
}

static void write_query(int query)
{
    char *record = malloc(64);
    if (record == NULL)
        abort();
    int is_open = (__atomic_load_n(&log_flags, __ATOMIC_SEQ_CST) & LOG_OPEN) != 0;
    snprintf(record, 64, "query %d %s", query, is_open ? "logged" : "lost");
    raddle_oracle(is_open); /* SITE */
    puts(record);
    free(record);
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, rotate, NULL);
    wait_for(&rotating);
    write_query(1);
    pthread_join(thread, NULL);
    return 0;
}
