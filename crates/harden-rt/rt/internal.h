/* What the parts of the runtime share. Nothing here is for users. */
#ifndef RADDLE_HARDEN_INTERNAL_H
#define RADDLE_HARDEN_INTERNAL_H

#include <stdint.h>
#include <stddef.h>

/* The compiler emits one of these per failure site; the layout is known to crates/harden-plugin/src/emit.rs. */
struct raddle_site {
    const char *file;
    const char *function;
    uint32_t line;
    uint8_t kind;
    uint8_t flags;
    uint16_t reserved;
    uint64_t recoveries;
    uint64_t retries;
    uint64_t failures;
};

enum { SITE_ASSERTION, SITE_DEREFERENCE, SITE_OUTPUT, SITE_DEADLOCK, SITE_ORACLE };

/* The failing edge releases locks, so the pause comes after that, by raddle_harden_pause. */
#define SITE_RELEASES 1

#define HIDDEN __attribute__((visibility("hidden")))

/* A line of text for the log, built without libc. */
struct line {
    char *text;
    size_t size;
    size_t length;
};

/* A line of at most so many bytes, on the stack: signal handlers have little of it. */
#define LINE(name, bytes)    \
    char name##_bytes[bytes]; \
    struct line name = {name##_bytes, bytes, 0}
#define LINE_BYTES 480
#define LONG_LINE_BYTES 4000

HIDDEN void line_text(struct line *line, const char *text);
HIDDEN void line_number(struct line *line, uint64_t number);
HIDDEN void line_hex(struct line *line, uint64_t number);
HIDDEN void line_site(struct line *line, const struct raddle_site *site);
HIDDEN void line_write(struct line *line);

/* What monitoring may count on. */
enum counter { RECOVERIES, RETRIES, NOT_RECOVERED, DEADLOCKS, LINES_LEFT_OUT, COUNTERS };
HIDDEN void count(enum counter counter);
HIDDEN uint64_t counted(enum counter counter);
HIDDEN void stats_write(void);
HIDDEN void stats_start(void);

HIDDEN uint64_t now_ns(void);
HIDDEN long raw_syscall(long number, long a, long b, long c, long d);
HIDDEN uint32_t random_below(uint32_t bound);

/* Settings, read once from the environment before main. */
extern HIDDEN uint64_t retries_max;
extern HIDDEN uint64_t time_max_ns;
extern HIDDEN uint64_t lock_timeout_ns;
extern HIDDEN int log_fd;
/* Lines per second. */
extern HIDDEN uint64_t log_rate;

/* What happens when a cycle closes that nothing can be done about. */
enum { ON_DEADLOCK_REPORT, ON_DEADLOCK_ABORT, ON_DEADLOCK_WAIT };
extern HIDDEN int on_deadlock;

/* A cycle is told when it has lasted this long: until then another of its threads may go back. */
#define CYCLE_LASTS_NS 150000000u
/* A wait for a lock with an unknown owner is told when it has lasted so many times lock_timeout_ns. */
#define UNKNOWN_LASTS 4
/* So many failures of trylock in a row are a wait. */
#define TRIES_MIN 256u

enum lock_kind { LOCK_MUTEX, LOCK_READ, LOCK_WRITE, LOCK_OTHER };
enum answer { NO_CYCLE, CYCLE, UNKNOWN };
struct waiter;

HIDDEN enum answer cycle_through(const void *lock, enum lock_kind kind);
HIDDEN void cycle_report(const void *lock, enum lock_kind kind, struct raddle_site *site);
HIDDEN void owner_note(void *lock, enum lock_kind kind, struct raddle_site *site);
HIDDEN struct waiter *waiter_begin(void *lock, enum lock_kind kind, struct raddle_site *site);
HIDDEN void waiter_end(struct waiter *waiter);
HIDDEN void forget_threads(void);

/* Set when this thread could not write into its log. */
extern HIDDEN __thread int log_is_broken;

/* Set by the part that always runs, so that the handler of faults is linked with it. */
extern HIDDEN int faults_are_linked;

/* A caller that is prepared to be re-executed: its registers rbx, rbp, r12 to r15, rsp, and its pad. */
struct prepared {
    uintptr_t registers[8];
};

/* Looks for one at most `levels` callers above the frame that stands at `failing`, or if that is 0, above the function
   that called the runtime. Only linked, and with it the unwinder, if some site has levels. */
__attribute__((weak)) HIDDEN int find_prepared(struct prepared *prepared, uint32_t levels, uintptr_t failing);

uint32_t raddle_harden_inject(void);
uint32_t raddle_harden_retry(struct raddle_site *site, uintptr_t frame);

#endif
