/* cobet/atomic_pair, buggy.
 * Wrong: an atomic increment is followed by an atomic read for the new value; another
 * increment in between makes two threads get the same number.
 * Origin: Linux, two atomic operations where one combined is needed (COBET section 4.3), as a
 * user-mode model */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int sequence;
static int number[2];

static void *next_number(void *arg)
{
    atomic_fetch_add(&sequence, 1);
    *(int *)arg = atomic_load(&sequence);
    return NULL;
}

int main(void)
{
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, next_number, &number[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert(number[0] != number[1]);
    return 0;
}
