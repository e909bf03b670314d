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

struct waiter {
    uint32_t thread;
    enum lock_kind kind;
    void *lock;
    struct raddle_site *site;
};

/* Who took a lock last, and where; a lock that falls onto the same place takes it over. */
struct owner {
    void *lock;
    struct raddle_site *site;
    uint32_t thread;
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

/* On the fast path of every lock that is watched. */
HIDDEN void owner_note(void *lock, struct raddle_site *site)
{
    struct owner *owner = owner_slot(lock);
    owner->site = site;
    owner->thread = self_tid();
    owner->lock = lock;
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

static uint32_t noted_owner(const void *lock)
{
    const struct owner *owner = owner_slot(lock);
    return owner->lock == lock ? owner->thread : 0;
}

/* The thread that holds a lock; 0 nobody. Of several readers the last one counts, if hardened code saw it. */
static uint32_t holder_of(const void *lock, enum lock_kind kind, int *is_known, int *is_certain)
{
    *is_known = *is_certain = 1;
    if (kind == LOCK_MUTEX)
        return (uint32_t)__atomic_load_n(&((const pthread_mutex_t *)lock)->__data.__owner, __ATOMIC_RELAXED);
    if (kind == LOCK_READ || kind == LOCK_WRITE) {
        const pthread_rwlock_t *rwlock = lock;
        uint32_t writer = (uint32_t)__atomic_load_n(&rwlock->__data.__cur_writer, __ATOMIC_RELAXED);
        if (writer != 0)
            return writer;
    }
    uint32_t noted = noted_owner(lock);
    *is_certain = 0;
    *is_known = noted != 0;
    return noted;
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
};

/* Follows lock -> holder -> what it waits for, until it comes back to this thread. */
static enum answer follow(const void *lock, enum lock_kind kind, struct chain *chain)
{
    uint32_t self = self_tid();
    int is_lock = 1;
    for (chain->length = 0; chain->length < CHAIN_MAX;) {
        int is_known, is_certain;
        uint32_t holder = holder_of(lock, kind, &is_known, &is_certain);
        if (!is_known)
            return UNKNOWN;
        if (holder == 0)
            return NO_CYCLE;
        struct owner *owner = owner_slot(lock);
        int is_noted = owner->lock == lock && owner->thread == holder;
        chain->steps[chain->length++] =
            (struct step){is_certain && (is_lock || is_noted), holder, lock, is_noted ? owner->site : NULL};
        if (holder == self)
            return CYCLE;
        struct waiter *waiter = waiter_of(holder);
        if (waiter != NULL) {
            lock = waiter->lock;
            kind = waiter->kind;
            is_lock = 1;
            if (lock == NULL)
                return NO_CYCLE;
            continue;
        }
        intptr_t word = futex_of(holder);
        if (word == -1)
            return UNKNOWN;
        /* A futex word is aligned to 4; a mutex to 8. */
        if (word == 0 || word % 8 != 0)
            return NO_CYCLE;
        lock = (const void *)word;
        kind = LOCK_MUTEX;
        is_lock = 0;
    }
    return NO_CYCLE;
}

HIDDEN enum answer cycle_through(const void *lock, enum lock_kind kind)
{
    struct chain chain;
    return follow(lock, kind, &chain);
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
    uint64_t name = 1;
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

/* One line: each thread, the lock it waits for, and where the next one took that. */
HIDDEN void cycle_report(const void *lock, enum lock_kind kind, struct raddle_site *site)
{
    struct chain chain;
    if (on_deadlock == ON_DEADLOCK_WAIT || follow(lock, kind, &chain) != CYCLE || !is_new(&chain))
        return;
    LINE(line, LONG_LINE_BYTES);
    line_site(&line, site);
    line_text(&line, " of ");
    line_number(&line, (uint64_t)chain.length);
    line_text(&line, chain.length == 1 ? " thread cannot be recovered from: " : " threads cannot be recovered from: ");
    uint32_t waits = self_tid();
    int is_certain = 1;
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
    line_write(&line);
    count(DEADLOCKS);
    stats_write();
    if (is_certain && on_deadlock == ON_DEADLOCK_ABORT)
        abort();
}
