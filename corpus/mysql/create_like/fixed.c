/* mysql/create_like, fixed.
 * Wrong: the definition file of the new table is published before its data file exists; INSERT
 * opens the table in between and reports a missing file. No data race.
 * Fix: both files are created in one critical section.
 * Origin: MySQL, CREATE TABLE LIKE against INSERT, error bug (PIKE Fig. 5.4) */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock_open = PTHREAD_MUTEX_INITIALIZER;
static int definition_file, data_file;
static int wrong_errors;

static void *create_like(void *arg)
{
    pthread_mutex_lock(&lock_open);
    definition_file = 1;

    data_file = 1;
    pthread_mutex_unlock(&lock_open);
    return arg;
}

static void *insert(void *arg)
{
    pthread_mutex_lock(&lock_open);
    if (definition_file && !data_file) {
        fputs("ERROR 1017: can't find file: 't2'\n", stderr);
        wrong_errors++;
    }
    pthread_mutex_unlock(&lock_open);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, create_like, NULL);
    pthread_create(&t2, NULL, insert, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return wrong_errors ? 1 : 0;
}
