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
    char text[480];
    size_t length;
};

HIDDEN void line_text(struct line *line, const char *text);
HIDDEN void line_number(struct line *line, uint64_t number);
HIDDEN void line_site(struct line *line, const struct raddle_site *site);
HIDDEN void line_write(struct line *line);

HIDDEN uint64_t now_ns(void);
HIDDEN long raw_syscall(long number, long a, long b, long c, long d);
HIDDEN uint32_t random_below(uint32_t bound);

/* Settings, read once from the environment before main. */
extern HIDDEN uint64_t retries_max;
extern HIDDEN uint64_t time_max_ns;
extern HIDDEN uint64_t lock_timeout_ns;
extern HIDDEN int log_fd;

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
