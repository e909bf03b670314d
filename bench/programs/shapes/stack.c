/* The lock-free stack of three cells as the literature has it: who finds no cell tries again without end, and the only
 * assertion is that a popped cell keeps its owner's mark while it is owned. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#define CELLS 3

static struct {
    volatile int owner;
    atomic_int next;
} cells[CELLS];
static atomic_int head, count;

static int pop(void)
{
    while (atomic_load(&count) > 1) {
        int top = atomic_load(&head);
        int next = atomic_exchange(&cells[top].next, -1);
        if (next >= 0) {
            int expected = top;
            if (atomic_compare_exchange_strong(&head, &expected, next)) {
                atomic_fetch_sub(&count, 1);
                return top;
            }
            atomic_exchange(&cells[top].next, next);
        }
    }
    return -1;
}

static void push(int cell)
{
    int top = atomic_load(&head);

    do {
        atomic_store(&cells[cell].next, top);
    } while (!atomic_compare_exchange_strong(&head, &top, cell));
    atomic_fetch_add(&count, 1);
}

static void *user(void *arg)
{
    int me = (int)(intptr_t)arg;

    for (int i = 0; i < 2; i++) {
        int cell;
        while ((cell = pop()) < 0)
            sched_yield();
        cells[cell].owner = me;
        assert(cells[cell].owner == me);
        push(cell);
    }
    return arg;
}

int main(void)
{
    pthread_t t[3];

    for (int i = 0; i < CELLS; i++)
        atomic_init(&cells[i].next, i + 1 < CELLS ? i + 1 : -1);
    atomic_init(&count, CELLS);
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, user, (void *)(intptr_t)i);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}
