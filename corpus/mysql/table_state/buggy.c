/* mysql/table_state, buggy.
 * Wrong: the state of the table is read twice; REPAIR marks the table crashed for a moment
 * between the reads and the client gets an error for a healthy table.
 * Origin: MySQL3, unjustified error message, atomicity violation (ConSeq Table 4.10) */
#include <pthread.h>
#include <stdio.h>

enum { TABLE_OK, TABLE_CRASHED };

static volatile int state = TABLE_OK;
static volatile int errors;

static void *select_rows(void *arg)
{
    if (state == TABLE_OK) {
        if (state == TABLE_CRASHED) {
            fputs("ERROR 145: table is marked as crashed\n", stderr);
            errors++;
        }
    }
    return arg;
}

static void *repair(void *arg)
{
    state = TABLE_CRASHED;
    state = TABLE_OK;
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
