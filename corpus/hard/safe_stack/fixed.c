/* hard/safe_stack, fixed.
 * Wrong: pop takes the next index out of a node, and puts it back when it loses the race for
 * the head; an index that is put back late ends up in a node that has been popped and pushed
 * since, and a node is handed out twice.
 * Fix: next is only read, and the head carries a counter that changes with every exchange.
 * Origin: hard: lock-free stack of the kind known as SafeStack, whose flaw needs three threads
 * and five preemptions (the minimum was found by exhaustive search of a model) */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define NODES 4
#define TRIES 3 /* a pop that keeps losing gives up, so that nothing spins */

static struct {
    atomic_int next, users;
} node[NODES];
static atomic_int count;
static _Atomic uint64_t head; /* counter in the upper half, node in the lower */

static int pop(void)
{
    for (int tries = 0; tries < TRIES && atomic_load(&count) > 1; tries++) {
        uint64_t old = atomic_load(&head);
        int top = (int)(uint32_t)old;
        if (top < 0)
            return -1;
        uint64_t new = ((old >> 32) + 1) << 32 | (uint32_t)atomic_load(&node[top].next);
        if (atomic_compare_exchange_strong(&head, &old, new)) {
            atomic_fetch_sub(&count, 1);
            return top;
        }
    }
    return -1;
}

static void push(int n)
{
    uint64_t old = atomic_load(&head), new;

    do {
        atomic_store(&node[n].next, (int)(uint32_t)old);
        new = ((old >> 32) + 1) << 32 | (uint32_t)n;
    } while (!atomic_compare_exchange_strong(&head, &old, new));
    atomic_fetch_add(&count, 1);
}

static int take(void)
{
    int n = pop();

    if (n >= 0)
        assert(atomic_fetch_add(&node[n].users, 1) == 0);
    return n;
}

static void give(int n)
{
    if (n < 0)
        return;
    atomic_fetch_sub(&node[n].users, 1);
    push(n);
}

static void *pairs(void *arg)
{
    int a = take(), b = take();

    give(a);
    give(b);
    take();
    take();
    return arg;
}

static void *singles(void *arg)
{
    give(take());
    give(take());
    return arg;
}

int main(void)
{
    pthread_t t1, t2, t3;

    for (int i = 0; i < NODES; i++)
        atomic_init(&node[i].next, i + 1 < NODES ? i + 1 : -1);
    atomic_init(&count, NODES);
    pthread_create(&t1, NULL, pairs, NULL);
    pthread_create(&t2, NULL, singles, NULL);
    pthread_create(&t3, NULL, singles, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    pthread_join(t3, NULL);
    return 0;
}
