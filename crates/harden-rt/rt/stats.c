/* Counters for monitoring: RADDLE_HARDEN_STATS names a file that is written anew at each event, in the text format of
   Prometheus, so that anything from `cat` to a collector can read it. Events are rare, one write each is nothing. */
#include "internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t counters[COUNTERS];
static int stats_fd = -1;

static const char *const names[COUNTERS] = {
    "raddle_harden_recoveries_total ", "raddle_harden_retries_total ",       "raddle_harden_not_recovered_total ",
    "raddle_harden_deadlocks_total ",  "raddle_harden_lines_left_out_total "};

HIDDEN uint64_t counted(enum counter counter)
{
    return __atomic_load_n(&counters[counter], __ATOMIC_RELAXED);
}

HIDDEN void count(enum counter counter)
{
    __atomic_fetch_add(&counters[counter], 1, __ATOMIC_RELAXED);
}

HIDDEN void stats_write(void)
{
    if (stats_fd < 0)
        return;
    LINE(text, LINE_BYTES);
    for (int i = 0; i < COUNTERS; i++) {
        line_text(&text, names[i]);
        line_number(&text, counted((enum counter)i));
        line_text(&text, "\n");
    }
    raw_syscall(SYS_pwrite64, stats_fd, (long)text.text, (long)text.length, 0);
}

HIDDEN void stats_start(void)
{
    const char *path = getenv("RADDLE_HARDEN_STATS");
    if (path == NULL)
        return;
    stats_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    stats_write();
}
