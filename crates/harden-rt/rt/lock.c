/* Lock functions that hardened code calls in place of the program's. Each comes in two forms: one returns DEADLOCK
   instead of waiting in a cycle, and the failing edge releases what the region took; the other, whose name ends in
   _watch, is for sites where nothing can be taken back: it tells of the cycle and goes on waiting.

   A free lock costs one call more than in the program; everything else happens only when a lock is busy. Waiting is
   done in slices, and after each slice cycle.c looks for a cycle. A wrong answer costs one needless re-execution. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* What the compiler compares the result with; no errno value. */
#define DEADLOCK 0x7adde
#define FIRST_WAIT_NS 1000000u
#define LONGEST_WAIT_NS 64000000u

/* How one kind of lock is taken. */
struct kind {
    enum lock_kind number;
    /* 0 if taken, EBUSY if not. */
    int (*try)(void *lock);
    /* Waits for at most that long; ETIMEDOUT if it was not enough. */
    int (*wait)(void *lock, uint64_t ns);
};

static void add_ns(struct timespec *time, uint64_t ns)
{
    ns += (uint64_t)time->tv_nsec;
    time->tv_sec += (time_t)(ns / 1000000000u);
    time->tv_nsec = (long)(ns % 1000000000u);
}

static struct timespec in(clockid_t clock, uint64_t ns)
{
    struct timespec until;
    clock_gettime(clock, &until);
    add_ns(&until, ns);
    return until;
}

/* The slow path of every lock function. */
static int wait_for(void *lock, struct raddle_site *site, const struct kind *kind, int may_fail)
{
    int saved = errno, result;
    uint64_t start = now_ns();
    struct waiter *waiter = waiter_begin(lock, kind->number, site);
    uint64_t in_cycle_since = 0;
    for (uint64_t wait = FIRST_WAIT_NS;; wait = wait < LONGEST_WAIT_NS ? wait * 2 : wait) {
        result = kind->wait(lock, wait);
        if (result != ETIMEDOUT)
            break;
        if (on_deadlock == ON_DEADLOCK_WAIT && !may_fail)
            continue;
        enum answer answer = cycle_through(lock, kind->number);
        uint64_t now = now_ns();
        int is_late = answer == UNKNOWN && now - start > lock_timeout_ns;
        if (may_fail && (answer == CYCLE || is_late)) {
            result = DEADLOCK;
            break;
        }
        if (answer == UNKNOWN && !may_fail && now - start > UNKNOWN_LASTS * lock_timeout_ns)
            cycle_report(lock, kind->number, site);
        if (answer != CYCLE) {
            in_cycle_since = 0;
        } else if (in_cycle_since == 0) {
            in_cycle_since = now;
        } else if (!may_fail && now - in_cycle_since > CYCLE_LASTS_NS) {
            /* Others in the cycle have had their time to go back. */
            cycle_report(lock, kind->number, site);
        }
    }
    waiter_end(waiter);
    errno = saved;
    return result;
}

static int take(void *lock, struct raddle_site *site, const struct kind *kind, int may_fail)
{
    if (may_fail && raddle_harden_inject())
        return DEADLOCK;
    int result = kind->try(lock);
    if (result == EBUSY)
        result = wait_for(lock, site, kind, may_fail);
    if (result == 0 || result == EOWNERDEAD)
        owner_note(lock, kind->number, site);
    return result;
}

static int mutex_try(void *lock)
{
    return pthread_mutex_trylock(lock);
}

static int mutex_wait(void *lock, uint64_t ns)
{
    struct timespec until = in(CLOCK_MONOTONIC, ns);
    int result = pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until);
    if (result != EINVAL)
        return result;
    /* Priority-inheriting mutexes take only the real-time clock before glibc 2.35. */
    until = in(CLOCK_REALTIME, ns);
    return pthread_mutex_timedlock(lock, &until);
}

static int read_try(void *lock)
{
    return pthread_rwlock_tryrdlock(lock);
}

static int read_wait(void *lock, uint64_t ns)
{
    struct timespec until = in(CLOCK_MONOTONIC, ns);
    return pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &until);
}

static int write_try(void *lock)
{
    return pthread_rwlock_trywrlock(lock);
}

static int write_wait(void *lock, uint64_t ns)
{
    struct timespec until = in(CLOCK_MONOTONIC, ns);
    return pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &until);
}

static int spin_try(void *lock)
{
    return pthread_spin_trylock((pthread_spinlock_t *)lock);
}

static int spin_wait(void *lock, uint64_t ns)
{
    for (uint64_t start = now_ns(); now_ns() - start < ns;)
        for (int i = 0; i < 1000; i++) {
            if (*(volatile int *)lock == 1 && spin_try(lock) == 0)
                return 0;
            __asm__ volatile("pause");
        }
    return ETIMEDOUT;
}

/* std::sync::Mutex of Rust: a word that is 0 free, 1 held, 2 held with waiters. */
static int rust_try(void *lock)
{
    return __atomic_exchange_n((uint32_t *)lock, 2, __ATOMIC_ACQUIRE) == 0 ? 0 : EBUSY;
}

static int rust_wait(void *lock, uint64_t ns)
{
    for (uint64_t start = now_ns(), now = start; now - start < ns; now = now_ns()) {
        if (rust_try(lock) == 0)
            return 0;
        struct timespec wait = {0, 0};
        add_ns(&wait, ns - (now - start));
        syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, &wait, NULL, 0);
    }
    return ETIMEDOUT;
}

#define LOCK(function, type, kind_number, try_it, wait_for_it)                            \
    static const struct kind function##_kind = {kind_number, try_it, wait_for_it};        \
    int raddle_harden_##function(type *lock, struct raddle_site *site)                    \
    {                                                                                     \
        return take((void *)lock, site, &function##_kind, 1);                             \
    }                                                                                     \
    int raddle_harden_##function##_watch(type *lock, struct raddle_site *site)            \
    {                                                                                     \
        return take((void *)lock, site, &function##_kind, 0);                             \
    }

LOCK(mutex_lock, pthread_mutex_t, LOCK_MUTEX, mutex_try, mutex_wait)
LOCK(rwlock_rdlock, pthread_rwlock_t, LOCK_READ, read_try, read_wait)
LOCK(rwlock_wrlock, pthread_rwlock_t, LOCK_WRITE, write_try, write_wait)
LOCK(spin_lock, pthread_spinlock_t, LOCK_OTHER, spin_try, spin_wait)
LOCK(rust_lock, uint32_t, LOCK_OTHER, rust_try, rust_wait)

static int c11(int result)
{
    return result == 0 ? thrd_success : result == DEADLOCK ? DEADLOCK : thrd_error;
}

/* mtx_t of glibc is a pthread_mutex_t. */
int raddle_harden_mtx_lock(mtx_t *lock, struct raddle_site *site)
{
    return c11(take(lock, site, &mutex_lock_kind, 1));
}

int raddle_harden_mtx_lock_watch(mtx_t *lock, struct raddle_site *site)
{
    return c11(take(lock, site, &mutex_lock_kind, 0));
}

/* A loop around trylock waits as a lock does, only nobody sees it: after some failures in a row the thread counts as
   waiting, and looks for a cycle now and then. */
static __thread void *tried;
static __thread uint32_t tries;
static __thread struct waiter *trier;

static int try_lock(pthread_mutex_t *lock, struct raddle_site *site, int may_fail)
{
    int result = pthread_mutex_trylock(lock);
    if (result == EBUSY && tried == lock) {
        if (++tries < TRIES_MIN)
            return result;
        if (trier == NULL)
            trier = waiter_begin(lock, LOCK_MUTEX, site);
        if (tries % TRIES_MIN == 0 && cycle_through(lock, LOCK_MUTEX) == CYCLE) {
            if (!may_fail && tries >= 4 * TRIES_MIN)
                cycle_report(lock, LOCK_MUTEX, site);
            result = may_fail ? DEADLOCK : result;
        }
        if (result != DEADLOCK)
            return result;
    }
    waiter_end(trier);
    trier = NULL;
    tried = result == EBUSY ? lock : NULL;
    tries = 0;
    if (result == 0 || result == EOWNERDEAD)
        owner_note(lock, LOCK_MUTEX, site);
    return result;
}

int raddle_harden_mutex_trylock(pthread_mutex_t *lock, struct raddle_site *site)
{
    return try_lock(lock, site, 1);
}

int raddle_harden_mutex_trylock_watch(pthread_mutex_t *lock, struct raddle_site *site)
{
    return try_lock(lock, site, 0);
}

void raddle_harden_rust_unlock(uint32_t *word)
{
    int saved = errno;
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
