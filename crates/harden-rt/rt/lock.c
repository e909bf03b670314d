/* Locks that notice a deadlock. Where the owner of a mutex is known (every pthread mutex of glibc) the wait-for chain
   is followed: mutex -> owner -> the futex that owner sleeps on (from /proc/self/task/TID/syscall, so threads inside
   code that was not hardened count as well) -> its owner ... until it comes back to this thread. A wrong answer costs
   one needless re-execution, never correctness. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What the compiler compares the result with; no errno value. */
#define DEADLOCK 0x7adde
#define CHAIN_MAX 64
#define FIRST_WAIT_NS 1000000u
#define LONGEST_WAIT_NS 64000000u

static uint32_t self_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

/* The futex word that `thread` sleeps on; NULL if it does not sleep on one; -1 if the kernel does not tell. */
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

enum answer { NO_CYCLE, CYCLE, UNKNOWN };

static enum answer cycle_through(const pthread_mutex_t *mutex)
{
    uint32_t self = self_tid();
    for (int hop = 0; hop < CHAIN_MAX; hop++) {
        uint32_t owner = (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
        if (owner == self)
            return CYCLE;
        if (owner == 0)
            return NO_CYCLE;
        intptr_t word = futex_of(owner);
        if (word < 0 && word >= -1)
            return UNKNOWN;
        /* A futex word is aligned to 4; a mutex to 8. */
        if (word == 0 || word % 8 != 0)
            return NO_CYCLE;
        mutex = (const pthread_mutex_t *)word;
    }
    return NO_CYCLE;
}

static void add_ns(struct timespec *time, uint64_t ns)
{
    ns += (uint64_t)time->tv_nsec;
    time->tv_sec += (time_t)(ns / 1000000000u);
    time->tv_nsec = (long)(ns % 1000000000u);
}

/* pthread_mutex_lock that returns DEADLOCK instead of waiting in a cycle. */
int raddle_harden_mutex_lock(pthread_mutex_t *mutex)
{
    if (raddle_harden_inject())
        return DEADLOCK;
    int result = pthread_mutex_trylock(mutex);
    if (result != EBUSY)
        return result;
    int saved = errno;
    uint64_t start = now_ns();
    for (uint64_t wait = FIRST_WAIT_NS;; wait = wait < LONGEST_WAIT_NS ? wait * 2 : wait) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        add_ns(&until, wait);
        result = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
        if (result == EINVAL) {
            /* Priority-inheriting mutexes take only the real-time clock before glibc 2.35. */
            clock_gettime(CLOCK_REALTIME, &until);
            add_ns(&until, wait);
            result = pthread_mutex_timedlock(mutex, &until);
        }
        if (result != ETIMEDOUT)
            break;
        enum answer answer = cycle_through(mutex);
        if (answer == CYCLE || (answer == UNKNOWN && now_ns() - start > lock_timeout_ns)) {
            result = DEADLOCK;
            break;
        }
    }
    errno = saved;
    return result;
}

/* std::sync::Mutex of Rust: a word that is 0 free, 1 held, 2 held with waiters. It has no owner, so a deadlock is
   assumed after a time. */
uint32_t raddle_harden_rust_lock(uint32_t *word)
{
    int saved = errno;
    uint64_t start = now_ns();
    uint32_t result = 0;
    for (;;) {
        if (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) == 0)
            break;
        struct timespec wait = {0, 10000000};
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, &wait, NULL, 0);
        if (now_ns() - start > lock_timeout_ns) {
            result = DEADLOCK;
            break;
        }
    }
    errno = saved;
    return result;
}

void raddle_harden_rust_unlock(uint32_t *word)
{
    int saved = errno;
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
