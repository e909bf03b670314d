/* mysql/show_tables, fixed.
 * Wrong: the names are listed under the lock, each table is opened under it again; a table
 * dropped in between makes the whole answer wrong although other tables match. No data race.
 * Fix: the list is made and used in one critical section.
 * Origin: MySQL, SHOW TABLES against DROP TABLE, semantic bug (PIKE Fig. 5.3) */
#include <pthread.h>
#include <string.h>

#define TABLES 3

static pthread_mutex_t lock_open = PTHREAD_MUTEX_INITIALIZER;
static const char *table[TABLES] = {"t10", "t11", "u1"};
static int answered, failed;

static int open_table(const char *name)
{
    for (int i = 0; i < TABLES; i++)
        if (table[i] != NULL && strcmp(table[i], name) == 0)
            return i;
    return -1;
}

static void *show_tables(void *arg)
{
    const char *names[TABLES];
    int n = 0;

    pthread_mutex_lock(&lock_open);
    for (int i = 0; i < TABLES; i++)
        if (table[i] != NULL && strstr(table[i], "t1") != NULL)
            names[n++] = table[i];
    for (int i = 0; i < n; i++) {
        if (open_table(names[i]) < 0)
            failed = 1;
        else
            answered++;
    }
    pthread_mutex_unlock(&lock_open);
    return arg;
}

static void *drop_table(void *arg)
{
    pthread_mutex_lock(&lock_open);
    table[0] = NULL;
    pthread_mutex_unlock(&lock_open);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, show_tables, NULL);
    pthread_create(&t2, NULL, drop_table, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return failed || answered == 0 ? 1 : 0;
}
