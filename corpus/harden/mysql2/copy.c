/* MySQL in another spelling: the text of the query is measured, copied into a private buffer, and asserted to fit. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *query = "select 1; ";
static volatile int reading, written;

static void *other_session(void *unused)
{
    (void)unused;
    while (!reading)
        usleep(50);
    usleep(1000);
    __atomic_store_n(&query, "select 1 from numbers", __ATOMIC_SEQ_CST);
    written = 1;
    return NULL;
}

static size_t show_processlist(char *line, size_t size)
{
    char copy[32];
    reading = 1;
    size_t allocated = strlen(__atomic_load_n(&query, __ATOMIC_SEQ_CST));
    for (int i = 0; i < 100000000 && !written; i++)
        ;
    snprintf(copy, sizeof copy, "%s", __atomic_load_n(&query, __ATOMIC_SEQ_CST));
    size_t copied = strlen(copy);
    assert(copied <= allocated); /* SITE */
    snprintf(line, size, "length %zu", copied - 1);
    return copied;
}

int main(void)
{
    pthread_t thread;
    char line[64];
    pthread_create(&thread, NULL, other_session, NULL);
    show_processlist(line, sizeof line);
    pthread_join(thread, NULL);
    puts(line);
    return 0;
}
