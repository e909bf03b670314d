/* Hints and calls of the raddle machine. Freestanding C or C++, no library needed; without effect outside of raddle.
 *
 * Programs under `raddle explore`: raddle_snapshot() says where schedules begin (`--snapshot-at hint`). It is one NOP.
 *
 * Programs under `raddle linearize`: each thread says where an operation on the shared object begins and ends, what it
 * was given and what it gave. Each mark is one NOP whose operands stand in registers. Probes are operations that ask
 * for the state when all others are over.
 *
 *   raddle_begin("insert");
 *   raddle_argument(key);
 *   raddle_result(map_insert(map, key));
 *   raddle_end_operation();
 *
 * Programs that bring their own test to `raddle kernel explore --agent-program`: all other calls, each of them a CPUID
 * instruction.
 *
 *   int main(void)
 *   {
 *       set_up();
 *       create two threads, pin thread 0 to processor 0 and thread 1 to processor 1; each does:
 *           meet the others (all threads must be running before the first one starts);
 *           raddle_start(n);
 *           the system calls of interest;
 *           raddle_end(n);
 *       join them;
 *       raddle_finish(everything_is_fine() ? 0 : 1);
 *   }
 */
#ifndef RADDLE_H
#define RADDLE_H

#define RADDLE_LEAF 0x4f524144u

enum raddle_call {
    RADDLE_INFO = 1,  /* text, length: what the guest is, as `key value` lines */
    RADDLE_INPUT = 2, /* buffer, size: the machine stands at its boot snapshot; returns the length of the input */
    RADDLE_START = 3, /* thread, address of its progress word: waits for all others at the start line */
    RADDLE_END = 4,   /* thread: the interesting part is over */
    RADDLE_RESULT = 5, /* bytes, length: what the calls returned */
    RADDLE_LOG = 6,    /* text, length */
    RADDLE_FINISH = 7, /* status: the test is over */
    RADDLE_FATAL = 8,  /* text, length: the test could not be run */
    RADDLE_THREADS = 9, /* count: how many threads will come to the start line */
    RADDLE_FAILED = 10, /* text, length: a check of the test failed */
};

/* The set-up is done: schedules begin here. The displacement of this NOP reads RDLS. */
static inline void raddle_snapshot(void)
{
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x52, 0x44, 0x4c, 0x53" : : : "memory");
}

/* What an argument or a result is. */
enum raddle_value {
    RADDLE_NUMBER = 0,
    RADDLE_TEXT = 1,  /* bytes */
    RADDLE_ERROR = 2, /* bytes: the operation itself says that it failed */
};

/* A NOP whose displacement reads RDL and a letter; its operands are in rdi, rsi and rdx. */
#define RADDLE_MARK(letter, a, b, c) \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x52, 0x44, 0x4c, " letter \
                     : : "D"(a), "S"(b), "d"(c) : "memory")

/* An operation begins; it ends with raddle_end_operation() on the same thread. */
static inline void raddle_begin(const char *name)
{
    RADDLE_MARK("0x42", name, __builtin_strlen(name), 0L);
}

/* The same, but it asks for the state: to be used when all operations are over. */
static inline void raddle_probe(const char *name)
{
    RADDLE_MARK("0x51", name, __builtin_strlen(name), 0L);
}

static inline void raddle_argument(long number) { RADDLE_MARK("0x41", (long)RADDLE_NUMBER, number, 0L); }
static inline void raddle_argument_bytes(const void *bytes, unsigned long length)
{
    RADDLE_MARK("0x41", (long)RADDLE_TEXT, bytes, length);
}
static inline void raddle_argument_text(const char *text)
{
    raddle_argument_bytes(text, __builtin_strlen(text));
}

static inline void raddle_result(long number) { RADDLE_MARK("0x52", (long)RADDLE_NUMBER, number, 0L); }
static inline void raddle_result_bytes(const void *bytes, unsigned long length)
{
    RADDLE_MARK("0x52", (long)RADDLE_TEXT, bytes, length);
}
static inline void raddle_result_text(const char *text) { raddle_result_bytes(text, __builtin_strlen(text)); }
static inline void raddle_result_error(const char *text)
{
    RADDLE_MARK("0x52", (long)RADDLE_ERROR, text, __builtin_strlen(text));
}

static inline void raddle_end_operation(void) { RADDLE_MARK("0x45", 0L, 0L, 0L); }

static inline long raddle_call(long number, long a, long b, long c)
{
    long leaf = RADDLE_LEAF;
    __asm__ volatile("cpuid"
                     : "+a"(leaf), "+b"(number), "+c"(a), "+d"(b)
                     : "S"(c), "D"(0)
                     : "memory");
    return leaf;
}

static inline void raddle_threads(int count) { raddle_call(RADDLE_THREADS, count, 0, 0); }
static inline void raddle_start(int thread) { raddle_call(RADDLE_START, thread, 0, 0); }
static inline void raddle_end(int thread) { raddle_call(RADDLE_END, thread, 0, 0); }
static inline void raddle_finish(int status) { raddle_call(RADDLE_FINISH, status, 0, 0); }
static inline void raddle_log(const char *text, long length) { raddle_call(RADDLE_LOG, (long)text, length, 0); }
static inline void raddle_failed(const char *text, long length) { raddle_call(RADDLE_FAILED, (long)text, length, 0); }

#endif
