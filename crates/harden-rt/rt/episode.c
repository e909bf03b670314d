/* One recovery is an episode: the failed attempts of one thread at one site in one stack frame.

   The passing path of a check carries no code of ours, so success is noticed late: an episode whose last failure is
   old has ended well. Episodes therefore live in a static table, and whoever comes by next (a later failure of any
   thread, or the end of the process) writes the line for it. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FREE, ACTIVE, BUSY };
#define EPISODES 512
/* A failure this long after the last one, measured from the end of the pause, begins a new episode. */
#define GAP_NS 100000000u

struct episode {
    uint32_t state;
    uint32_t thread;
    struct raddle_site *site;
    uintptr_t frame;
    uint64_t count;
    uint64_t first_ns;
    uint64_t last_ns;
};

HIDDEN uint64_t retries_max = 1000000;
HIDDEN uint64_t time_max_ns = 10000000000u;
HIDDEN uint64_t lock_timeout_ns = 500000000u;
HIDDEN int log_fd = 2;
HIDDEN int on_deadlock = ON_DEADLOCK_REPORT;

static struct episode episodes[EPISODES];
HIDDEN uint64_t log_rate = 100;
static int log_start = 1, log_summary;
static uint32_t inject_every;

/* Dynamic counts of re-execution points, in builds that ask for them; the second are those that serve deadlocks only. */
__attribute__((weak)) uint64_t raddle_harden_points, raddle_harden_lock_points;

static int claim(struct episode *episode, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&episode->state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void release(struct episode *episode, uint32_t to)
{
    __atomic_store_n(&episode->state, to, __ATOMIC_RELEASE);
}

/* Writes the line of an ended episode; the caller has claimed it. */
static void close_episode(struct episode *episode)
{
    LINE(line, LINE_BYTES);
    __atomic_fetch_add(&episode->site->recoveries, 1, __ATOMIC_RELAXED);
    count(RECOVERIES);
    line_site(&line, episode->site);
    line_text(&line, " recovered after ");
    line_number(&line, episode->count);
    line_text(&line, episode->count == 1 ? " retry, " : " retries, ");
    line_number(&line, (episode->last_ns - episode->first_ns + 999) / 1000);
    line_text(&line, " us");
    line_write(&line);
    stats_write();
    release(episode, FREE);
}

static void close_old_episodes(uint64_t now, uint64_t gap)
{
    for (size_t i = 0; i < EPISODES; i++) {
        struct episode *episode = &episodes[i];
        if (__atomic_load_n(&episode->state, __ATOMIC_RELAXED) != ACTIVE || !claim(episode, ACTIVE, BUSY))
            continue;
        if (now - episode->last_ns >= gap)
            close_episode(episode);
        else
            release(episode, ACTIVE);
    }
}

static struct episode *find(struct raddle_site *site, uintptr_t frame, uint32_t thread)
{
    for (size_t i = 0; i < EPISODES; i++) {
        struct episode *episode = &episodes[i];
        if (__atomic_load_n(&episode->state, __ATOMIC_RELAXED) != ACTIVE || !claim(episode, ACTIVE, BUSY))
            continue;
        if (episode->site == site && episode->frame == frame && episode->thread == thread)
            return episode;
        release(episode, ACTIVE);
    }
    return NULL;
}

static struct episode *begin(struct raddle_site *site, uintptr_t frame, uint32_t thread, uint64_t now)
{
    for (size_t i = 0; i < EPISODES; i++) {
        struct episode *episode = &episodes[i];
        if (__atomic_load_n(&episode->state, __ATOMIC_RELAXED) != FREE || !claim(episode, FREE, BUSY))
            continue;
        episode->site = site;
        episode->frame = frame;
        episode->thread = thread;
        episode->count = 0;
        episode->first_ns = now;
        episode->last_ns = now;
        if (log_start) {
            LINE(line, LINE_BYTES);
            line_site(&line, site);
            line_text(&line, " failed, re-executing");
            line_write(&line);
        }
        return episode;
    }
    return NULL;
}

static void spin(uint32_t rounds)
{
    while (rounds-- > 0)
        __asm__ volatile("pause");
}

static void pause_for(uint64_t count)
{
    if (count <= 16) {
        spin(random_below(64u << (count / 4)));
        return;
    }
    uint64_t limit_us = count < 64 ? 20 : count < 1024 ? 100 : 1000;
    struct { int64_t seconds, nanoseconds; } time = {0, random_below((uint32_t)limit_us * 1000)};
    raw_syscall(SYS_nanosleep, (long)&time, 0, 0, 0);
}

static __thread uint64_t pause_count;
static __thread struct episode *pausing;

/* Called by the thunk, when locks have been released, in place of the pause in raddle_harden_retry. */
uint32_t raddle_harden_pause(void)
{
    pause_for(pause_count < 16 ? 17 : pause_count);
    struct episode *episode = pausing;
    if (episode != NULL && claim(episode, ACTIVE, BUSY)) {
        if (episode->thread == (uint32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0))
            episode->last_ns = now_ns();
        release(episode, ACTIVE);
    }
    return 0;
}

static uint32_t give_up(struct episode *episode)
{
    LINE(line, LINE_BYTES);
    struct raddle_site *site = episode->site;
    __atomic_fetch_add(&site->failures, 1, __ATOMIC_RELAXED);
    count(NOT_RECOVERED);
    line_site(&line, site);
    line_text(&line, " not recovered after ");
    line_number(&line, episode->count);
    line_text(&line, " retries; the program goes on as it would have");
    line_write(&line);
    stats_write();
    release(episode, FREE);
    return 0;
}

/* Decides whether the failing edge re-executes: 1 yes, 0 the original failure happens. Safe in signal handlers: no
   lock is waited for, no libc is called; a slot that a signal interrupted is simply not found. */
uint32_t raddle_harden_retry(struct raddle_site *site, uintptr_t frame)
{
    uint32_t thread = (uint32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0);
    uint64_t now = now_ns();
    struct episode *episode = find(site, frame, thread);
    if (episode != NULL && now - episode->last_ns >= GAP_NS) {
        close_episode(episode);
        episode = NULL;
    }
    if (episode == NULL) {
        close_old_episodes(now, GAP_NS);
        episode = begin(site, frame, thread, now);
    }
    /* A full table means 512 recoveries at this very moment: without a count there must be no retry. */
    if (episode == NULL)
        return 0;
    if (log_is_broken || episode->count >= retries_max || now - episode->first_ns > time_max_ns)
        return give_up(episode);
    episode->count++;
    __atomic_fetch_add(&site->retries, 1, __ATOMIC_RELAXED);
    count(RETRIES);
    pause_count = episode->count;
    pausing = episode;
    if (!(site->flags & SITE_RELEASES)) {
        pause_for(episode->count);
        episode->last_ns = now_ns();
    } else {
        episode->last_ns = now;
    }
    release(episode, ACTIVE);
    return 1;
}

/* For tests: whether a passing check shall fail this once. */
uint32_t raddle_harden_inject(void)
{
    return inject_every != 0 && random_below(inject_every) == 0;
}

/* What a call that the compiler did not turn into a check does: nothing. */
void raddle_oracle(int holds)
{
    (void)holds;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    if (text == NULL || *text < '0' || *text > '9')
        return otherwise;
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

static void choose_log(void)
{
    const char *log = getenv("RADDLE_HARDEN_LOG");
    if (log == NULL || strcmp(log, "stderr") == 0)
        return;
    if (strcmp(log, "none") == 0) {
        log_fd = -1;
        return;
    }
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0)
        log_fd = fd;
}

static void choose_deadlock(void)
{
    const char *text = getenv("RADDLE_HARDEN_ON_DEADLOCK");
    if (text != NULL && strcmp(text, "abort") == 0)
        on_deadlock = ON_DEADLOCK_ABORT;
    else if (text != NULL && strcmp(text, "wait") == 0)
        on_deadlock = ON_DEADLOCK_WAIT;
}

static void forget_in_child(void)
{
    forget_threads();
    for (size_t i = 0; i < EPISODES; i++)
        release(&episodes[i], FREE);
}

__attribute__((constructor)) static void start(void)
{
    faults_are_linked = 1;
    int saved = errno;
    retries_max = number_from("RADDLE_HARDEN_RETRIES", retries_max);
    time_max_ns = number_from("RADDLE_HARDEN_TIME_MS", time_max_ns / 1000000) * 1000000;
    lock_timeout_ns = number_from("RADDLE_HARDEN_LOCK_TIMEOUT_MS", lock_timeout_ns / 1000000) * 1000000;
    inject_every = (uint32_t)number_from("RADDLE_HARDEN_INJECT", 0);
    log_summary = number_from("RADDLE_HARDEN_SUMMARY", 0) != 0;
    log_rate = number_from("RADDLE_HARDEN_LOG_RATE", log_rate);
    choose_log();
    choose_deadlock();
    stats_start();
    if (inject_every != 0)
        log_start = 0;
    pthread_atfork(NULL, NULL, forget_in_child);
    errno = saved;
}

__attribute__((destructor)) static void finish(void)
{
    int saved = errno;
    close_old_episodes(now_ns(), 0);
    stats_write();
    if (log_summary) {
        LINE(line, LINE_BYTES);
        line_text(&line, "raddle-harden: summary: ");
        line_number(&line, counted(RECOVERIES));
        line_text(&line, " recoveries, ");
        line_number(&line, counted(RETRIES));
        line_text(&line, " retries, ");
        line_number(&line, counted(NOT_RECOVERED));
        line_text(&line, " not recovered, ");
        line_number(&line, counted(DEADLOCKS));
        line_text(&line, " deadlocks told, ");
        line_number(&line, raddle_harden_points + raddle_harden_lock_points);
        line_text(&line, " points passed, ");
        line_number(&line, raddle_harden_lock_points);
        line_text(&line, " of them for deadlocks");
        line_write(&line);
    }
    errno = saved;
}
