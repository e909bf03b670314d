/* classic/peterson, fixed.
 * Wrong: a thread gives the turn away before it raises its flag; both can then find the way
 * free.
 * Fix: the flag is raised before the turn is given away.
 * Origin: classic: Peterson's mutual exclusion with turn set before the flag */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int flag[2], turn, inside;

static void enter(int me)
{
    int other = 1 - me;

    atomic_store(&flag[me], 1);
    atomic_store(&turn, other);
    while (atomic_load(&flag[other]) && atomic_load(&turn) == other)
        sched_yield();
}

static void leave(int me)
{
    atomic_store(&flag[me], 0);
}

static void *work(void *arg)
{
    int me = *(int *)arg;

    enter(me);
    assert(atomic_fetch_add(&inside, 1) == 0);
    atomic_fetch_sub(&inside, 1);
    leave(me);
    return NULL;
}

int main(void)
{
    static int number[2] = {0, 1};
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, &number[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
