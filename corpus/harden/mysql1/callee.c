/* MySQL in another spelling: the state is handed to the function that writes, and the oracle stands there. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <raddle_oracle.h>

enum { LOG_CLOSED, LOG_OPEN };
struct binary_log { int state, number; };
static struct binary_log binary_log = {LOG_OPEN, 1};
static int rotating;

static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void *rotate(void *unused)
{
    (void)unused;
    __atomic_store_n(&binary_log.state, LOG_CLOSED, __ATOMIC_SEQ_CST);
    __atomic_store_n(&rotating, 1, __ATOMIC_RELEASE);
    usleep(4000);
    __atomic_store_n(&binary_log.state, LOG_OPEN, __ATOMIC_SEQ_CST);
    return NULL;
}

__attribute__((noinline)) static void append(int query, int state)
{
    raddle_oracle(state == LOG_OPEN); /* SITE */
    printf("query %d %s\n", query, state == LOG_OPEN ? "logged" : "lost");
}

__attribute__((noinline)) static void write_query(int query)
{
    append(query, __atomic_load_n(&binary_log.state, __ATOMIC_SEQ_CST));
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
