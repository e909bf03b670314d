/* apache/log_corruption, buggy.
 * Wrong: both writers copy to the same buf_index before either advances it, so one record
 * overwrites the other.
 * Origin: Apache#2, log-file corruption (CTrigger Table 2) */
#include <pthread.h>
#include <string.h>

#define LOG_SIZE 256
#define RECORD 16

static char buf[LOG_SIZE];
static volatile int buf_index;

static void *writer(void *arg)
{
    char record[RECORD];

    memset(record, *(char *)arg, sizeof record);
    memcpy(&buf[buf_index], record, RECORD);
    buf_index += RECORD;
    return NULL;
}

/* Counts the whole records of one writer in the file. */
static int records_of(char who)
{
    int found = 0;

    for (int at = 0; at + RECORD <= buf_index; at += RECORD) {
        int same = 0;
        for (int i = 0; i < RECORD; i++)
            same += buf[at + i] == who;
        found += same == RECORD;
    }
    return found;
}

int main(void)
{
    static char names[2] = {'x', 'y'};
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, writer, &names[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return records_of('x') == 1 && records_of('y') == 1 ? 0 : 1;
}
