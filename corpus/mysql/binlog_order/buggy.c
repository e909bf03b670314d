/* mysql/binlog_order, buggy.
 * Wrong: the table and the log have a lock each; a thread that changes the table first may log
 * second, and a replica that replays the log differs. No data race.
 * Origin: MySQL, operations and their log entries in different orders (ConMem/ConSeq chapter
 * 3, question 3: four MySQL bugs) */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock_table = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock_log = PTHREAD_MUTEX_INITIALIZER;
static int row;
static int binlog[2], entries;

static void *update(void *arg)
{
    int value = *(int *)arg;

    pthread_mutex_lock(&lock_table);
    row = value;
    pthread_mutex_unlock(&lock_table);

    pthread_mutex_lock(&lock_log);
    binlog[entries++] = value;
    pthread_mutex_unlock(&lock_log);
    return NULL;
}

int main(void)
{
    static int values[2] = {7, 11};
    pthread_t t[2];
    int replica = 0;

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, update, &values[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < entries; i++)
        replica = binlog[i];
    assert(replica == row);
    return 0;
}
