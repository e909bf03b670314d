/* apache/log_buffer, fixed.
 * Wrong: the room left in the buffer is checked and used in two steps; another writer advances
 * buf_index between them, the copy overruns the buffer and destroys the pointer behind it.
 * Fix: the check, the copy and the advance are one critical section.
 * Origin: Apache buffered log writer, buf_index / buf->cnt (CTrigger Fig. 1; ConMem Fig. 4.6,
 * Apache-2: overflow) */
#include <pthread.h>
#include <string.h>

#define LOG_SIZE 64
#define RECORD 40

static struct {
    char buf[LOG_SIZE];
    const char *volatile name; /* what an overrun hits first */
} log_file = {.name = "access_log"};
static volatile int buf_index;
static volatile int flushed;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void flush_log(void)
{
    /* The file is named for every flush, as the real writer does through its descriptor. */
    flushed += log_file.name[0] == 'a' ? buf_index : 0;
    buf_index = 0;
}

static void *writer(void *arg)
{
    const char *record = arg;
    pthread_mutex_lock(&log_lock);
    if (buf_index + RECORD > LOG_SIZE)
        flush_log();
    memcpy(&log_file.buf[buf_index], record, RECORD);
    buf_index += RECORD;
    pthread_mutex_unlock(&log_lock);
    return NULL;
}

int main(void)
{
    static char first[RECORD], second[RECORD];
    pthread_t t1, t2;

    memset(first, 'x', sizeof first);
    memset(second, 'y', sizeof second);
    pthread_create(&t1, NULL, writer, first);
    pthread_create(&t2, NULL, writer, second);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    flush_log();
    return 0;
}
