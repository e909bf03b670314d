/* mysql/query_null, fixed.
 * Wrong: a thread sets thd->query and reads it back; KILL clears it in between.
 * Fix: the write and the read back are one critical section.
 * Origin: MySQL-2, NULL dereference of a pointer that the same thread has just set (ConMem
 * Table 4.3; Fig. 3.5b, read-after-write) */
#include <pthread.h>
#include <string.h>

struct thd {
    const char *volatile query;
    size_t query_length;
};

static struct thd connection;
static pthread_mutex_t lock_thd = PTHREAD_MUTEX_INITIALIZER;

static void *execute(void *arg)
{
    struct thd *thd = arg;

    pthread_mutex_lock(&lock_thd);
    thd->query = "SELECT 1";
    thd->query_length = strlen(thd->query);
    pthread_mutex_unlock(&lock_thd);
    return NULL;
}

static void *kill_query(void *arg)
{
    struct thd *thd = arg;

    pthread_mutex_lock(&lock_thd);
    thd->query = NULL;
    pthread_mutex_unlock(&lock_thd);
    return NULL;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, execute, &connection);
    pthread_create(&t2, NULL, kill_query, &connection);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return connection.query_length == 8 ? 0 : 1;
}
