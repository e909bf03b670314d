/* Who waits for whom. A lock's owner is what the lock itself says (pthread mutexes, writers of rwlocks) or, of locks that
   do not say it, the thread that hardened code last saw taking it. What a thread waits for is what it registered here
   before it slept, or the futex that the kernel says it sleeps on, so that threads inside code that was not hardened
   count as well.

   Nothing here is locked: answers may be out of date, which costs a needless re-execution, or a line in the log that
   CYCLE_LASTS_NS makes unlikely. A step is certain if the lock itself names its owner and is sure to be a lock; a cycle
   that is not certain in every step is told as such, and never ends the program. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHAIN_MAX 64
#define WAITERS 1024
#define OWNERS 4096
/* Readers of one lock that are known at a time. */
#define READERS 8

struct waiter {
    uint32_t thread;
    enum lock_kind kind;
    void *lock;
    struct raddle_site *site;
};

/* Who took a lock last, and where, and which threads hold it for reading; a lock that falls onto the same place takes it
   over. */
struct owner {
    void *lock;
    struct raddle_site *site;
    uint32_t thread;
    uint32_t readers[READERS];
};

static struct waiter waiters[WAITERS];
static struct owner owners[OWNERS];
static __thread uint32_t own_tid;

static uint32_t self_tid(void)
{
    if (own_tid == 0)
        own_tid = (uint32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0);
    return own_tid;
}

HIDDEN void forget_threads(void)
{
    own_tid = 0;
    for (size_t i = 0; i < WAITERS; i++)
        waiters[i].thread = 0;
}

static struct owner *owner_slot(const void *lock)
{
    return &owners[((uintptr_t)lock >> 3) * 0x9e3779b97f4a7c15u >> 52];
}

static void swap_reader(struct owner *owner, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < READERS; i++) {
        uint32_t expected = from;
        if (__atomic_compare_exchange_n(&owner->readers[i], &expected, to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
    }
}

/* On the fast path of every lock that is watched. */
HIDDEN void owner_note(void *lock, enum lock_kind kind, struct raddle_site *site)
{
    struct owner *owner = owner_slot(lock);
    if (kind == LOCK_READ || kind == LOCK_WRITE) {
        if (owner->lock != lock)
            for (size_t i = 0; i < READERS; i++)
                __atomic_store_n(&owner->readers[i], 0, __ATOMIC_RELAXED);
        if (kind == LOCK_READ)
            swap_reader(owner, 0, self_tid());
    }
    owner->site = site;
    owner->thread = self_tid();
    owner->lock = lock;
}

/* This thread gives a reader-writer lock back. */
int raddle_harden_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    struct owner *owner = owner_slot(lock);
    if (owner->lock == lock)
        swap_reader(owner, self_tid(), 0);
    return pthread_rwlock_unlock(lock);
}

HIDDEN struct waiter *waiter_begin(void *lock, enum lock_kind kind, struct raddle_site *site)
{
    uint32_t self = self_tid();
    for (size_t i = 0; i < WAITERS; i++) {
        uint32_t nobody = 0;
        if (waiters[i].thread != 0)
            continue;
        if (!__atomic_compare_exchange_n(&waiters[i].thread, &nobody, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        waiters[i].kind = kind;
        waiters[i].site = site;
        __atomic_store_n(&waiters[i].lock, lock, __ATOMIC_RELEASE);
        return &waiters[i];
    }
    return NULL;
}

HIDDEN void waiter_end(struct waiter *waiter)
{
    if (waiter == NULL)
        return;
    __atomic_store_n(&waiter->lock, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&waiter->thread, 0, __ATOMIC_RELEASE);
}

static struct waiter *waiter_of(uint32_t thread)
{
    for (size_t i = 0; i < WAITERS; i++)
        if (__atomic_load_n(&waiters[i].thread, __ATOMIC_ACQUIRE) == thread && waiters[i].lock != NULL)
            return &waiters[i];
    return NULL;
}

/* The futex word that `thread` sleeps on; 0 if it does not sleep on one; -1 if the kernel does not tell. */
static intptr_t futex_of(uint32_t thread)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return -1;
    text[length] = 0;
    long number;
    unsigned long word, operation;
    if (sscanf(text, "%ld %lx %lx", &number, &word, &operation) != 3 || number != SYS_futex)
        return 0;
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        return (intptr_t)word;
    default:
        return 0;
    }
}

/* The threads that hold a lock, as far as that is known. */
struct holders {
    uint32_t threads[READERS];
    int count;
    int is_known;
    int is_certain;
};

static void add_holder(struct holders *holders, uint32_t thread)
{
    if (thread != 0 && holders->count < READERS)
        holders->threads[holders->count++] = thread;
}

static struct holders holders_of(const void *lock, enum lock_kind kind)
{
    struct holders holders = {.is_known = 1, .is_certain = 1};
    if (kind == LOCK_MUTEX) {
        add_holder(&holders,
                   (uint32_t)__atomic_load_n(&((const pthread_mutex_t *)lock)->__data.__owner, __ATOMIC_RELAXED));
        return holders;
    }
    const struct owner *owner = owner_slot(lock);
    if (kind == LOCK_READ || kind == LOCK_WRITE) {
        const pthread_rwlock_t *rwlock = lock;
        add_holder(&holders, (uint32_t)__atomic_load_n(&rwlock->__data.__cur_writer, __ATOMIC_RELAXED));
        if (holders.count > 0)
            return holders;
        for (size_t i = 0; i < READERS && owner->lock == lock; i++)
            add_holder(&holders, __atomic_load_n(&owner->readers[i], __ATOMIC_RELAXED));
    } else if (owner->lock == lock) {
        add_holder(&holders, owner->thread);
    }
    holders.is_certain = 0;
    holders.is_known = holders.count > 0;
    return holders;
}

struct step {
    int is_certain;
    uint32_t holder;
    const void *lock;
    struct raddle_site *taken_at;
};

struct chain {
    struct step steps[CHAIN_MAX];
    int length;
    /* The lock behind the last step, if nothing is known of who holds it. */
    const void *unknown;
};

static enum answer follow(const void *lock, enum lock_kind kind, int is_lock, struct chain *chain);

/* On from a thread to the lock that it waits for. */
static enum answer follow_thread(uint32_t thread, struct chain *chain)
{
    struct waiter *waiter = waiter_of(thread);
    if (waiter != NULL) {
        const void *lock = waiter->lock;
        return lock == NULL ? NO_CYCLE : follow(lock, waiter->kind, 1, chain);
    }
    intptr_t word = futex_of(thread);
    if (word == -1)
        return UNKNOWN;
    /* A futex word is aligned to 4; a mutex to 8. */
    if (word == 0 || word % 8 != 0)
        return NO_CYCLE;
    return follow((const void *)word, LOCK_MUTEX, 0, chain);
}

/* Follows lock -> holder -> what it waits for, until it comes back to this thread. A lock that several threads hold is
   waited for until the last of them gives it back, so each of them may close a cycle. The chain holds the way so far. */
static enum answer follow(const void *lock, enum lock_kind kind, int is_lock, struct chain *chain)
{
    struct holders holders = holders_of(lock, kind);
    enum answer answer = holders.is_known ? NO_CYCLE : UNKNOWN;
    int before = chain->length;
    if (before == CHAIN_MAX)
        return NO_CYCLE;
    if (!holders.is_known)
        chain->unknown = lock;
    const struct owner *owner = owner_slot(lock);
    for (int i = 0; i < holders.count; i++) {
        uint32_t holder = holders.threads[i];
        int is_noted = owner->lock == lock && owner->thread == holder;
        chain->length = before;
        chain->steps[chain->length++] = (struct step){holders.is_certain && (is_lock || is_noted), holder, lock,
                                                      is_noted ? owner->site : NULL};
        if (holder == self_tid())
            return CYCLE;
        /* A thread that is on the way already closes a cycle, but not one of this thread's. */
        int is_seen = 0;
        for (int j = 0; j < before; j++)
            is_seen |= chain->steps[j].holder == holder;
        enum answer found = is_seen ? NO_CYCLE : follow_thread(holder, chain);
        if (found == CYCLE)
            return CYCLE;
        if (found == UNKNOWN) {
            answer = UNKNOWN;
            break;
        }
    }
    if (answer == NO_CYCLE)
        chain->length = before;
    return answer;
}

HIDDEN enum answer cycle_through(const void *lock, enum lock_kind kind)
{
    struct chain chain;
    chain.length = 0;
    return follow(lock, kind, 1, &chain);
}

static void line_place(struct line *line, const struct raddle_site *site)
{
    if (site == NULL) {
        line_text(line, "an unknown place");
        return;
    }
    line_text(line, site->file);
    line_text(line, ":");
    line_number(line, site->line);
    line_text(line, " (");
    line_text(line, site->function);
    line_text(line, ")");
}

/* Cycles that were told, so that each of their threads does not tell them again. */
#define REPORTED 64
static uint64_t reported[REPORTED];

static int is_new(const struct chain *chain)
{
    uint64_t name = 1 + (uintptr_t)chain->unknown;
    for (int i = 0; i < chain->length; i++)
        name += ((uint64_t)chain->steps[i].holder << 32 ^ (uintptr_t)chain->steps[i].lock) * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < REPORTED; i++) {
        uint64_t empty = 0;
        if (__atomic_load_n(&reported[i], __ATOMIC_RELAXED) == name)
            return 0;
        if (__atomic_compare_exchange_n(&reported[i], &empty, name, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return 1;
        if (empty == name)
            return 0;
    }
    return 0;
}

/* One line: each thread, the lock it waits for, and where the next one took that. If the chain ends at a lock whose owner
   is not known, the line says that, and that it is a suspicion. */
HIDDEN void cycle_report(const void *lock, enum lock_kind kind, struct raddle_site *site)
{
    struct chain chain;
    chain.length = 0;
    chain.unknown = NULL;
    if (on_deadlock == ON_DEADLOCK_WAIT)
        return;
    enum answer answer = follow(lock, kind, 1, &chain);
    int is_certain = answer == CYCLE;
    if (answer == NO_CYCLE || (answer == UNKNOWN && chain.unknown == NULL) || !is_new(&chain))
        return;
    LINE(line, LONG_LINE_BYTES);
    line_site(&line, site);
    if (answer == CYCLE) {
        line_text(&line, " of ");
        line_number(&line, (uint64_t)chain.length);
        line_text(&line, chain.length == 1 ? " thread cannot be recovered from: " : " threads cannot be recovered from: ");
    } else {
        line_text(&line, " suspected: ");
    }
    uint32_t waits = self_tid();
    for (int i = 0; i < chain.length; i++) {
        is_certain &= chain.steps[i].is_certain;
        line_text(&line, i == 0 ? "thread " : "; thread ");
        line_number(&line, waits);
        line_text(&line, " waits for lock ");
        line_hex(&line, (uintptr_t)chain.steps[i].lock);
        line_text(&line, chain.steps[i].is_certain ? ", taken by thread " : ", taken, as far as known, by thread ");
        line_number(&line, chain.steps[i].holder);
        line_text(&line, " at ");
        line_place(&line, chain.steps[i].taken_at);
        waits = chain.steps[i].holder;
    }
    if (answer == UNKNOWN) {
        line_text(&line, chain.length == 0 ? "thread " : "; thread ");
        line_number(&line, waits);
        line_text(&line, " waits for lock ");
        line_hex(&line, (uintptr_t)chain.unknown);
        line_text(&line, ", whose owner is unknown");
    }
    line_write(&line);
    count(DEADLOCKS);
    stats_write();
    if (is_certain && on_deadlock == ON_DEADLOCK_ABORT)
        abort();
}
