/* mysql/table_state, fixed.
 * Wrong: the state of the table is read twice; REPAIR marks the table crashed for a moment
 * between the reads and the client gets an error for a healthy table.
 * Fix: REPAIR and the reader hold the table's lock.
 * Origin: MySQL3, unjustified error message, atomicity violation (ConSeq Table 4.10) */
#include <pthread.h>
#include <stdio.h>

enum { TABLE_OK, TABLE_CRASHED };

static volatile int state = TABLE_OK;
static volatile int errors;
static pthread_mutex_t lock_table = PTHREAD_MUTEX_INITIALIZER;

static void *select_rows(void *arg)
{
    pthread_mutex_lock(&lock_table);
    if (state == TABLE_OK) {
        if (state == TABLE_CRASHED) {
            fputs("ERROR 145: table is marked as crashed\n", stderr);
            errors++;
        }
    }
    pthread_mutex_unlock(&lock_table);
    return arg;
}

static void *repair(void *arg)
{
    pthread_mutex_lock(&lock_table);
    state = TABLE_CRASHED;
    state = TABLE_OK;
    pthread_mutex_unlock(&lock_table);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, select_rows, NULL);
    pthread_create(&t2, NULL, repair, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return errors ? 1 : 0;
}
