/* mysql/query_null, buggy.
 * Wrong: a thread sets thd->query and reads it back; KILL clears it in between.
 * Origin: MySQL-2, NULL dereference of a pointer that the same thread has just set (ConMem
 * Table 4.3; Fig. 3.5b, read-after-write) */
#include <pthread.h>
#include <string.h>

struct thd {
    const char *volatile query;
    size_t query_length;
};

static struct thd connection;

static void *execute(void *arg)
{
    struct thd *thd = arg;

    thd->query = "SELECT 1";
    thd->query_length = strlen(thd->query);
    return NULL;
}

static void *kill_query(void *arg)
{
    struct thd *thd = arg;

    thd->query = NULL;
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
