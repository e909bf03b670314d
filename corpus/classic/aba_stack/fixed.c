/* classic/aba_stack, fixed.
 * Wrong: pop compares only the head's index; while it is between reading next and the
 * exchange, another thread pops two nodes and pushes the first back, and the exchange installs
 * a node that is in use.
 * Fix: the head carries a counter that changes with every exchange.
 * Origin: classic: ABA on a lock-free stack with reused nodes */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define NODES 4
#define NONE 0 /* nodes are numbered from 1 */

static struct {
    atomic_int next;
    atomic_int users;
} node[NODES];
static _Atomic uint64_t head; /* counter in the upper half */

static void push(int n)
{
    uint64_t old, new;

    do {
        old = atomic_load(&head);
        atomic_store(&node[n].next, (int)(uint32_t)old);
        new = ((old >> 32) + 1) << 32 | (uint64_t)n;
    } while (!atomic_compare_exchange_strong(&head, &old, new));
}

static int pop(void)
{
    uint64_t old, new;

    do {
        old = atomic_load(&head);
        if ((uint32_t)old == NONE)
            return NONE;
        new = ((old >> 32) + 1) << 32 | (uint64_t)atomic_load(&node[(uint32_t)old].next);
    } while (!atomic_compare_exchange_strong(&head, &old, new));
    return (int)(uint32_t)old;
}

static int take(void)
{
    int n = pop();

    if (n != NONE)
        assert(atomic_fetch_add(&node[n].users, 1) == 0);
    return n;
}

static void give(int n)
{
    atomic_fetch_sub(&node[n].users, 1);
    push(n);
}

static void *one(void *arg)
{
    take();
    take();
    return arg;
}

static void *other(void *arg)
{
    int a = take();

    take();
    if (a != NONE)
        give(a);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    for (int n = 1; n < NODES; n++)
        push(n);
    pthread_create(&t1, NULL, one, NULL);
    pthread_create(&t2, NULL, other, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
