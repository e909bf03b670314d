/* mysql/proc_info, fixed.
 * Wrong: SHOW PROCESSLIST tests thd->proc_info and reads it again to print it; the owner sets
 * it to NULL between the two reads.
 * Fix: both threads hold the connection's lock.
 * Origin: MySQL-1, thd->proc_info (ConMem Fig. 3.4 and Table 4.3; Fig. 3.5c, read-after-read) */
#include <pthread.h>
#include <stdio.h>

struct thd {
    const char *volatile proc_info;
};

static struct thd connection = {.proc_info = "updating"};
static pthread_mutex_t lock_thd = PTHREAD_MUTEX_INITIALIZER;

static void *show_processlist(void *arg)
{
    struct thd *thd = arg;

    pthread_mutex_lock(&lock_thd);
    if (thd->proc_info)
        fputs(thd->proc_info, stdout);
    pthread_mutex_unlock(&lock_thd);
    return NULL;
}

static void *end_statement(void *arg)
{
    struct thd *thd = arg;

    pthread_mutex_lock(&lock_thd);
    thd->proc_info = NULL;
    pthread_mutex_unlock(&lock_thd);
    return NULL;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, show_processlist, &connection);
    pthread_create(&t2, NULL, end_statement, &connection);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
