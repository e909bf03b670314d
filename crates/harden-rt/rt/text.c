/* Text, time and system calls without libc: this code runs between two instructions of the user's function, perhaps
   in a signal handler, and must keep errno and the vector registers. */
#include "internal.h"

#include <sys/syscall.h>

HIDDEN long raw_syscall(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

HIDDEN uint64_t now_ns(void)
{
    struct { int64_t seconds, nanoseconds; } time = {0, 0};
    raw_syscall(SYS_clock_gettime, 1 /* CLOCK_MONOTONIC */, (long)&time, 0, 0);
    return (uint64_t)time.seconds * 1000000000u + (uint64_t)time.nanoseconds;
}

HIDDEN uint32_t random_below(uint32_t bound)
{
    static __thread uint64_t state;
    if (state == 0) {
        uint32_t low, high;
        __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
        state = ((uint64_t)high << 32 | low) ^ ((uint64_t)raw_syscall(SYS_gettid, 0, 0, 0, 0) << 40) ^ 0x9e3779b97f4a7c15u;
        if (state == 0)
            state = 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * bound >> 32);
}

HIDDEN void line_text(struct line *line, const char *text)
{
    while (*text != 0 && line->length + 2 < line->size)
        line->text[line->length++] = *text++;
}

HIDDEN void line_number(struct line *line, uint64_t number)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    line_text(line, digits + at);
}

HIDDEN void line_hex(struct line *line, uint64_t number)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = "0123456789abcdef"[number % 16];
        number /= 16;
    } while (number != 0);
    line_text(line, "0x");
    line_text(line, digits + at);
}

HIDDEN void line_site(struct line *line, const struct raddle_site *site)
{
    static const char *const kinds[] = {"assertion", "dereference", "output", "deadlock", "oracle"};
    line_text(line, "raddle-harden: ");
    line_text(line, site->file);
    line_text(line, ":");
    line_number(line, site->line);
    line_text(line, " (");
    line_text(line, site->function);
    line_text(line, "): ");
    line_text(line, kinds[site->kind]);
}

/* At most log_rate lines in each second; those that are left out are counted. */
static int may_write(void)
{
    static uint64_t second, lines;
    uint64_t now = now_ns() / 1000000000u;
    if (__atomic_exchange_n(&second, now, __ATOMIC_RELAXED) != now)
        __atomic_store_n(&lines, 0, __ATOMIC_RELAXED);
    return __atomic_add_fetch(&lines, 1, __ATOMIC_RELAXED) <= log_rate;
}

HIDDEN void line_write(struct line *line)
{
    if (log_fd < 0)
        return;
    if (!may_write()) {
        count(LINES_LEFT_OUT);
        return;
    }
    line->text[line->length++] = '\n';
    raw_syscall(SYS_write, log_fd, (long)line->text, (long)line->length, 0);
}
