/* hard/safe_stack, buggy.
 * Wrong: pop takes the next index out of a node, and puts it back when it loses the race for
 * the head; an index that is put back late ends up in a node that has been popped and pushed
 * since, and a node is handed out twice.
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
static atomic_int head;

static int pop(void)
{
    for (int tries = 0; tries < TRIES && atomic_load(&count) > 1; tries++) {
        int top = atomic_load(&head);
        int next = atomic_exchange(&node[top].next, -1);
        int expected = top;
        if (next < 0)
            continue;
        if (atomic_compare_exchange_strong(&head, &expected, next)) {
            atomic_fetch_sub(&count, 1);
            return top;
        }
        atomic_exchange(&node[top].next, next);
    }
    return -1;
}

static void push(int n)
{
    int old = atomic_load(&head);

    do {
        atomic_store(&node[n].next, old);
    } while (!atomic_compare_exchange_strong(&head, &old, n));
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
