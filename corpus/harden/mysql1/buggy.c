/* MySQL: while the binary log is rotated its state is written twice (closed, open); a query that reads it in between
   is not logged. Atomicity violation between two writes, wrong output. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <raddle_oracle.h>

enum { LOG_CLOSED, LOG_OPEN };
static int log_state = LOG_OPEN, rotating;

/* Forces the order of the failure. */
static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void *rotate(void *unused)
{
    (void)unused;
    __atomic_store_n(&log_state, LOG_CLOSED, __ATOMIC_SEQ_CST);
    __atomic_store_n(&rotating, 1, __ATOMIC_RELEASE);
    usleep(4000);
    __atomic_store_n(&log_state, LOG_OPEN, __ATOMIC_SEQ_CST);
    return NULL;
}

static void write_query(int query)
{
    int state = __atomic_load_n(&log_state, __ATOMIC_SEQ_CST);
    raddle_oracle(state == LOG_OPEN); /* SITE */
    printf("query %d %s\n", query, state == LOG_OPEN ? "logged" : "lost");
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
