/* A work-stealing queue: the owner pushes and pops at the tail, a thief takes at the head. VARIANT says which of its
 * parts is wrong: 1 - the owner does not look at the head again after it has moved the tail; 2 - the thief looks at the
 * tail before it takes the lock; 3 - without locks, the thief moves the head by a plain store; 4 - the owner compares
 * without the lock; 0 - nothing. Every item must be done exactly once. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef VARIANT
#define VARIANT 1
#endif
#define ROOM 16
#define ITEMS 4

struct item {
    atomic_int done;
};

static struct item items[2 * ITEMS];
static struct item *cells[ROOM];
static atomic_long head, tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void push(struct item *item)
{
    long t = atomic_load(&tail);

    cells[t % ROOM] = item;
    atomic_store(&tail, t + 1);
}

static struct item *pop(void)
{
    long t = atomic_load(&tail) - 1;
    struct item *item = NULL;

#if VARIANT == 1
    if (atomic_load(&head) > t)
        return NULL;
    atomic_store(&tail, t);
    return cells[t % ROOM];
#endif
    atomic_store(&tail, t);
    if (atomic_load(&head) < t)
        return cells[t % ROOM];
#if VARIANT == 4
    if (atomic_load(&head) <= t)
        item = cells[t % ROOM];
    else
        atomic_store(&tail, t + 1);
    return item;
#elif VARIANT == 3
    long h = t;
    if (atomic_compare_exchange_strong(&head, &h, t + 1))
        item = cells[t % ROOM];
    atomic_store(&tail, t + 1);
    return item;
#else
    pthread_mutex_lock(&lock);
    if (atomic_load(&head) <= t)
        item = cells[t % ROOM];
    else
        atomic_store(&tail, t + 1);
    pthread_mutex_unlock(&lock);
    return item;
#endif
}

static struct item *steal(void)
{
    struct item *item = NULL;

#if VARIANT == 3
    long h = atomic_load(&head);
    if (h < atomic_load(&tail)) {
        item = cells[h % ROOM];
        atomic_store(&head, h + 1);
    }
    return item;
#else
#if VARIANT == 2
    long t = atomic_load(&tail);
#endif
    pthread_mutex_lock(&lock);
    long h = atomic_load(&head);
    atomic_store(&head, h + 1);
#if VARIANT != 2
    long t = atomic_load(&tail);
#endif
    if (h < t)
        item = cells[h % ROOM];
    else
        atomic_store(&head, h);
    pthread_mutex_unlock(&lock);
    return item;
#endif
}

static void finish(struct item *item)
{
    if (item)
        assert(atomic_fetch_add(&item->done, 1) == 0);
}

static void *thief(void *arg)
{
    for (int i = 0; i < ITEMS / 2; i++)
        finish(steal());
    return arg;
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, thief, NULL);
    for (int i = 0; i < ITEMS; i++) {
        push(&items[2 * i]);
        push(&items[2 * i + 1]);
        finish(pop());
    }
    for (struct item *item = pop(); item; item = pop())
        finish(item);
    pthread_join(t, NULL);
    for (int i = 0; i < 2 * ITEMS; i++)
        assert(atomic_load(&items[i].done) == 1);
    return 0;
}
