/* MySQL: a thread reads the length of a shared buffer twice and asserts that nothing changed in between.
   Atomicity violation between two reads, assertion. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int query_length = 10;
static volatile int reading, written;

static void *other_session(void *unused)
{
    (void)unused;
    while (!reading)
        usleep(50);
    usleep(1000);
    __atomic_store_n(&query_length, 20, __ATOMIC_SEQ_CST);
    written = 1;
    return NULL;
}

static int show_processlist(void)
{
    reading = 1;
    int allocated = __atomic_load_n(&query_length, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 100000000 && !written; i++)
        ;
    int copied = __atomic_load_n(&query_length, __ATOMIC_SEQ_CST);
    assert(copied <= allocated); /* SITE */
    return copied;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, other_session, NULL);
    int length = show_processlist();
    pthread_join(thread, NULL);
    printf("length %d\n", length);
    return 0;
}
