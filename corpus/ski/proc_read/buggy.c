/* ski/proc_read, buggy.
 * Wrong: a 128-bit record is copied word by word while another thread replaces it; the reader
 * gets half of each.
 * Origin: Linux 3.6.1, read of a proc file returns corrupted values (SKI Table 6.8, bug C), as
 * a user-mode model */
#include <pthread.h>
#include <stdint.h>

static volatile uint64_t record[2] = {1, 1};
static volatile int corrupted;

static void *update(void *arg)
{
    record[0] = 2;
    record[1] = 2;
    return arg;
}

static void *proc_read(void *arg)
{
    uint64_t low, high;

    low = record[0];
    high = record[1];
    corrupted = low != high;
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, update, NULL);
    pthread_create(&t2, NULL, proc_read, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return corrupted;
}
