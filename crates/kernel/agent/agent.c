/* The guest's first process: makes the file systems, waits for a test, runs it, tells what came out.
 *
 * On a machine that does not answer (QEMU), it takes the test from a file of the initial file system, runs it in a
 * loop, and tells what came out on the console.
 *
 * A test is a list of operations with a data area (crates/kernel/src/program.rs writes it, one layout, both
 * little-endian). No C library: everything is a system call.
 */
#include "raddle.h"

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;

#define THREADS_MAX 8
#define INPUT_SIZE (8u << 20)
#define STACK_SIZE (64u << 10)
#define RESULTS_MAX 4096

enum {
    NR_read = 0, NR_write = 1, NR_open = 2, NR_close = 3, NR_mmap = 9, NR_sched_yield = 24, NR_dup2 = 33,
    NR_clone = 56, NR_fork = 57, NR_execve = 59, NR_exit = 60, NR_wait4 = 61, NR_uname = 63, NR_mkdir = 83,
    NR_mount = 165, NR_reboot = 169, NR_gettid = 186, NR_futex = 202, NR_sched_setaffinity = 203,
    NR_getdents64 = 217, NR_exit_group = 231, NR_finit_module = 313,
};

struct operand {
    u32 kind;   /* OPERAND_... */
    u32 width;  /* of a load: bytes, negative if signed */
    u64 value;  /* immediate or offset in the data area */
};

enum { OPERAND_NONE = 0, OPERAND_VALUE = 1, OPERAND_ADDRESS = 2, OPERAND_LOAD = 3 };

struct operation {
    u32 code;      /* OP_... */
    u32 statement; /* number of the statement in the test, for results */
    u64 extra;     /* call number, store width, relation */
    u64 target;    /* offset in the data area */
    struct operand operands[6];
};

enum { OP_CALL = 1, OP_STORE = 2, OP_ADD = 3, OP_SUBTRACT = 4, OP_COMPARE = 5, OP_EXPECT = 6, OP_RUN = 7,
       OP_AND = 8, OP_OR = 9 };
enum { IS_EQUAL = 0, IS_NOT_EQUAL = 1, IS_LESS = 2, IS_LESS_EQUAL = 3, IS_GREATER = 4, IS_GREATER_EQUAL = 5 };

struct section {
    u32 first;
    u32 count;
};

struct program {
    u32 magic;
    u32 threads;
    u32 flags; /* bit n: thread n is a process of its own */
    u32 data_offset;
    u32 data_size;
    u32 housekeeping; /* processor for everything movable */
    struct section setup;
    struct section check;
    struct section thread[THREADS_MAX];
    struct operation operations[];
};

#define MAGIC 0x54445231u
#define FLAG_EXTERNAL 0x80000000u
#define FLAG_MODULES 0x40000000u

struct result {
    u32 statement;
    u32 kind; /* 0: result of a call, 1: expectation held, 2: expectation failed */
    i64 value;
};

struct shared {
    volatile u32 arrived;
    volatile u32 ended;
    volatile u32 count;
    volatile u32 failed; /* expectations that did not hold */
    volatile u64 progress[THREADS_MAX];
    struct result results[RESULTS_MAX];
};

static struct shared *shared;
static struct program *program;
static u8 *data;
/* Nobody answers: no more calls of the machine. */
static int alone;
/* How often each thread makes its calls; more than once only alone. */
static u64 rounds = 1;

static inline i64 call6(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f)
{
    register i64 r10 __asm__("r10") = d;
    register i64 r8 __asm__("r8") = e;
    register i64 r9 __asm__("r9") = f;
    i64 result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#define call3(n, a, b, c) call6(n, (i64)(a), (i64)(b), (i64)(c), 0, 0, 0)

static u64 length_of(const char *text)
{
    u64 length = 0;
    while (text[length])
        length++;
    return length;
}

static void say(const char *text)
{
    call3(NR_write, 1, text, length_of(text));
}

static void fatal(const char *text)
{
    if (alone) {
        say("raddle: ");
        say(text);
        say("\n");
    } else {
        raddle_call(RADDLE_FATAL, (long)text, (long)length_of(text), 0);
    }
    for (;;)
        call3(NR_exit_group, 1, 0, 0);
}

/* Compilers call these for loops and structures. */
void *memset(void *to, int value, u64 count)
{
    u8 *bytes = to;
    while (count--)
        *bytes++ = (u8)value;
    return to;
}

void *memcpy(void *to, const void *from, u64 count)
{
    u8 *bytes = to;
    const u8 *source = from;
    while (count--)
        *bytes++ = *source++;
    return to;
}

/* ---- text ---- */

static char text[16384];
static u32 text_length;

static void put(const char *string)
{
    while (*string && text_length < sizeof text)
        text[text_length++] = *string++;
}

static void put_number(u64 number)
{
    char digits[21];
    u32 at = sizeof digits - 1;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(digits + at);
}

/* ---- the guest ---- */

static void mount(const char *kind, const char *where)
{
    call3(NR_mkdir, where, 0755, 0);
    call6(NR_mount, (i64)kind, (i64)where, (i64)kind, 0, 0, 0);
}

static void pin(i64 thread, u32 cpu)
{
    u64 mask = 1ul << cpu;
    call3(NR_sched_setaffinity, thread, sizeof mask, &mask);
}

static i64 read_file(const char *path, char *buffer, i64 size)
{
    i64 fd = call3(NR_open, path, 0, 0);
    if (fd < 0)
        return fd;
    i64 length = call3(NR_read, fd, buffer, size - 1);
    call3(NR_close, fd, 0, 0);
    if (length >= 0)
        buffer[length] = 0;
    return length;
}

static void put_file(const char *key, const char *path)
{
    char buffer[512];
    put(key);
    put(" ");
    i64 length = read_file(path, buffer, sizeof buffer);
    if (length > 0 && buffer[length - 1] == '\n')
        buffer[length - 1] = 0;
    put(length >= 0 ? buffer : "?");
    put("\n");
}

struct directory_entry {
    u64 inode;
    i64 offset;
    unsigned short length;
    u8 kind;
    char name[];
};

/* The thread's name out of /proc/N/comm. */
static void put_name(const char *pid)
{
    char path[64] = "/proc/";
    char name[64];
    u64 at = 6;
    for (const char *c = pid; *c; c++)
        path[at++] = *c;
    const char *rest = "/comm";
    while (*rest)
        path[at++] = *rest++;
    path[at] = 0;
    i64 length = read_file(path, name, sizeof name);
    if (length > 0 && name[length - 1] == '\n')
        name[length - 1] = 0;
    put(length > 0 ? name : pid);
}

/* Moves everything that can be moved to one processor; names what cannot. */
static void move_others(u32 cpu, int tell)
{
    static u8 buffer[16384] __attribute__((aligned(8)));
    i64 self = call3(NR_gettid, 0, 0, 0);
    i64 fd = call3(NR_open, "/proc", 0200000, 0);
    u64 mask = 1ul << cpu;
    for (;;) {
        i64 length = call3(NR_getdents64, fd, buffer, sizeof buffer);
        if (length <= 0)
            break;
        for (i64 at = 0; at < length;) {
            struct directory_entry *entry = (void *)(buffer + at);
            at += entry->length;
            i64 pid = 0;
            for (const char *c = entry->name; *c; c++)
                pid = *c >= '0' && *c <= '9' && pid >= 0 ? pid * 10 + (*c - '0') : -1;
            if (pid <= 0 || pid == self)
                continue;
            i64 moved = call3(NR_sched_setaffinity, pid, sizeof mask, &mask);
            if (moved < 0 && tell) {
                put("fixed ");
                put(entry->name);
                put(" ");
                put_name(entry->name);
                put("\n");
            }
        }
    }
    call3(NR_close, fd, 0, 0);
}

static void tell_guest(void)
{
    char names[6][65];
    text_length = 0;
    if (call3(NR_uname, names, 0, 0) >= 0) {
        put("release ");
        put(names[2]);
        put("\nversion ");
        put(names[3]);
        put("\n");
    }
    put_file("online", "/sys/devices/system/cpu/online");
    move_others(0, 1);
    raddle_call(RADDLE_INFO, (long)text, text_length, 0);
}

/* Where loadable modules are: only they have a file of their text's address. */
static void tell_modules(void)
{
    static u8 buffer[16384] __attribute__((aligned(8)));
    i64 fd = call3(NR_open, "/sys/module", 0200000, 0);
    text_length = 0;
    for (;;) {
        i64 length = call3(NR_getdents64, fd, buffer, sizeof buffer);
        if (length <= 0)
            break;
        for (i64 at = 0; at < length;) {
            struct directory_entry *entry = (void *)(buffer + at);
            char path[320] = "/sys/module/";
            char address[32];
            u64 end = 12;
            at += entry->length;
            for (const char *c = entry->name; *c && end < 256; c++)
                path[end++] = *c;
            const char *rest = "/sections/.text";
            while (*rest)
                path[end++] = *rest++;
            path[end] = 0;
            if (entry->name[0] == '.' || read_file(path, address, sizeof address) <= 0)
                continue;
            put("module ");
            put(entry->name);
            put(" ");
            put(address);
        }
    }
    call3(NR_close, fd, 0, 0);
    if (!alone)
        raddle_call(RADDLE_INFO, (long)text, text_length, 0);
}

/* Loads the modules that the user wants in every test: /modules/0, /modules/1, ... */
static void load_modules(void)
{
    char path[32] = "/modules/";
    char parameters_path[48];
    char parameters[1024];
    u32 number = 0;
    for (;; number++) {
        u32 end = 9;
        if (number >= 10)
            path[end++] = (char)('0' + number / 10 % 10);
        path[end++] = (char)('0' + number % 10);
        path[end] = 0;
        i64 fd = call3(NR_open, path, 0, 0);
        if (fd < 0)
            break;
        memcpy(parameters_path, path, end);
        memcpy(parameters_path + end, ".parameters", 12);
        if (read_file(parameters_path, parameters, sizeof parameters) < 0)
            parameters[0] = 0;
        i64 result = call3(NR_finit_module, fd, parameters, 0);
        call3(NR_close, fd, 0, 0);
        if (result < 0 && result != -17 /* EEXIST: the kernel has loaded it by itself */) {
            text_length = 0;
            put("module ");
            put(path + 9);
            put(" of --module, dependencies counted and from 0, cannot be loaded: error ");
            put_number((u64)-result);
            put("; the end of the console says why");
            text[text_length < sizeof text ? text_length : sizeof text - 1] = 0;
            fatal(text);
        }
    }
    if (number)
        tell_modules();
}

/* ---- operations ---- */

static i64 value_of(const struct operand *operand)
{
    const u8 *at = data + operand->value;
    switch (operand->kind) {
    case OPERAND_VALUE:
        return (i64)operand->value;
    case OPERAND_ADDRESS:
        return (i64)at;
    case OPERAND_LOAD:
        switch ((int)operand->width) {
        case 1: return *(const u8 *)at;
        case 2: return *(const unsigned short *)at;
        case 4: return *(const u32 *)at;
        case -1: return *(const signed char *)at;
        case -2: return *(const short *)at;
        case -4: return *(const int *)at;
        default: return *(const i64 *)at;
        }
    default:
        return 0;
    }
}

static void store(u64 target, u64 width, i64 value)
{
    u8 *at = data + target;
    for (u64 i = 0; i < width; i++)
        at[i] = (u8)((u64)value >> (8 * i));
}

static int compare(u64 relation, i64 a, i64 b)
{
    switch (relation) {
    case IS_EQUAL: return a == b;
    case IS_NOT_EQUAL: return a != b;
    case IS_LESS: return a < b;
    case IS_LESS_EQUAL: return a <= b;
    case IS_GREATER: return a > b;
    default: return a >= b;
    }
}

static void note(u32 statement, u32 kind, i64 value)
{
    if (kind == 2)
        __atomic_fetch_add(&shared->failed, 1, __ATOMIC_RELAXED);
    u32 index = __atomic_fetch_add(&shared->count, 1, __ATOMIC_RELAXED);
    if (index < RESULTS_MAX) {
        struct result *result = &shared->results[index];
        result->statement = statement;
        result->kind = kind;
        result->value = value;
    }
}

/* Runs a program to its end; its output goes to the console. */
static i64 run(const struct operation *operation)
{
    const char *arguments[8];
    int count = 0;
    for (; count < 6 && operation->operands[count].kind != OPERAND_NONE; count++)
        arguments[count] = (const char *)value_of(&operation->operands[count]);
    arguments[count] = 0;
    i64 child = call3(NR_fork, 0, 0, 0);
    if (child == 0) {
        static const char *environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", 0 };
        i64 error = call3(NR_execve, arguments[0], arguments, environment);
        call3(NR_exit_group, error < 0 ? 127 : 126, 0, 0);
    }
    int status = 0;
    if (child < 0 || call6(NR_wait4, child, (i64)&status, 0, 0, 0, 0) < 0)
        return -1;
    return status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
}

static void run_operation(const struct operation *operation)
{
    i64 values[6];
    i64 result = 0;
    if (operation->code != OP_RUN)
        for (int i = 0; i < 6; i++)
            values[i] = value_of(&operation->operands[i]);
    switch (operation->code) {
    case OP_CALL:
        result = call6((i64)operation->extra, values[0], values[1], values[2], values[3], values[4], values[5]);
        note(operation->statement, 0, result);
        break;
    case OP_RUN:
        result = run(operation);
        note(operation->statement, 0, result);
        break;
    case OP_STORE:
        store(operation->target, operation->extra, values[0]);
        return;
    case OP_ADD:
        result = values[0] + values[1];
        break;
    case OP_SUBTRACT:
        result = values[0] - values[1];
        break;
    case OP_COMPARE:
        result = compare(operation->extra, values[0], values[1]);
        break;
    case OP_AND:
        result = values[0] && values[1];
        break;
    case OP_OR:
        result = values[0] || values[1];
        break;
    case OP_EXPECT:
        note(operation->statement, values[0] ? 1 : 2, values[1]);
        return;
    }
    store(operation->target, 8, result);
}

static void run_section(struct section section, volatile u64 *progress)
{
    for (u32 i = 0; i < section.count; i++) {
        const struct operation *operation = &program->operations[section.first + i];
        if (progress && (operation->code == OP_CALL || operation->code == OP_RUN))
            *progress = operation->statement + 1;
        run_operation(operation);
    }
}

/* ---- threads ---- */

static void thread_main(u32 number)
{
    pin(0, number);
    /* All threads are there and none of them is in the kernel before the first one stops at the start line. */
    __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&shared->arrived, __ATOMIC_SEQ_CST) < program->threads)
        __asm__ volatile("pause");
    if (!alone)
        raddle_call(RADDLE_START, number, (long)&shared->progress[number], 0);
    for (u64 left = rounds; left; left--)
        run_section(program->thread[number], &shared->progress[number]);
    shared->progress[number] = ~0ul;
    if (!alone)
        raddle_call(RADDLE_END, number, 0, 0);
    __atomic_fetch_add(&shared->ended, 1, __ATOMIC_SEQ_CST);
    call6(NR_futex, (i64)&shared->ended, 1 /* FUTEX_WAKE */, 64, 0, 0, 0);
    call3(NR_exit, 0, 0, 0);
    __builtin_unreachable();
}

/* clone(2) with a stack of its own; the child never returns. */
static i64 spawn(u64 flags, u8 *stack_top, u32 number)
{
    i64 result;
    u64 *stack = (u64 *)stack_top;
    *--stack = (u64)number;
    *--stack = (u64)thread_main;
    register i64 r10 __asm__("r10") = 0;
    register i64 r8 __asm__("r8") = 0;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "pop %%rax\n\t"
                     "pop %%rdi\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "call *%%rax\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(result)
                     : "a"(NR_clone), "D"(flags), "S"(stack), "d"(0), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

#define CLONE_THREAD_FLAGS 0x00050f00ul /* VM, FS, FILES, SIGHAND, THREAD, SYSVSEM */
#define SIGCHLD 17

static void run_threads(void)
{
    for (u32 number = 0; number < program->threads; number++) {
        u8 *stack = (u8 *)call6(NR_mmap, 0, STACK_SIZE, 3, 0x8022 /* private, anonymous, populated */, -1, 0);
        if ((u64)stack > -4096ul)
            fatal("no memory for a thread's stack: give the machine more with --memory");
        int is_process = program->flags >> number & 1;
        i64 child = spawn(is_process ? SIGCHLD : CLONE_THREAD_FLAGS, stack + STACK_SIZE - 64, number);
        if (child < 0)
            fatal("a test thread could not be created: give the machine more memory with --memory");
    }
    for (;;) {
        u32 ended = __atomic_load_n(&shared->ended, __ATOMIC_SEQ_CST);
        if (ended >= program->threads)
            return;
        call6(NR_futex, (i64)&shared->ended, 0 /* FUTEX_WAIT */, ended, 0, 0, 0);
    }
}

/* Tells the results and ends the test; alone, also the machine. */
static void finish(int status)
{
    if (alone) {
        text_length = 0;
        put(status ? "raddle: the set-up failed: " : "raddle: the test ended: ");
        put_number(shared->failed);
        put(" expectations failed\n");
        call3(NR_write, 1, text, text_length);
        call6(NR_reboot, 0xfee1dead, 0x28121969, 0x01234567 /* restart */, 0, 0, 0);
    } else {
        u32 count = shared->count < RESULTS_MAX ? shared->count : RESULTS_MAX;
        raddle_call(RADDLE_RESULT, (long)shared->results, (long)(count * sizeof(struct result)), 0);
        raddle_finish(status);
    }
    for (;;)
        call3(NR_exit_group, 0, 0, 0);
}

/* The test of the initial file system, and how often its threads are to run it. */
static void take_own_test(void)
{
    char number[24];
    i64 fd = call3(NR_open, "/alone", 0, 0);
    i64 part;
    u64 length = 0;
    alone = 1;
    if (fd < 0)
        fatal("the machine gives no test, and there is no file /alone with one");
    while ((part = call3(NR_read, fd, (u8 *)program + length, INPUT_SIZE - length)) > 0)
        length += (u64)part;
    call3(NR_close, fd, 0, 0);
    if (length < sizeof *program || program->magic != MAGIC)
        fatal("the test in /alone is damaged");
    if (read_file("/alone.rounds", number, sizeof number) <= 0)
        return;
    rounds = 0;
    for (const char *c = number; *c >= '0' && *c <= '9'; c++)
        rounds = rounds * 10 + (u64)(*c - '0');
}

static void *map_shared(u64 size)
{
    /* Shared, so that processes of a test see each other's results; populated, so that no test faults here. */
    i64 at = call6(NR_mmap, 0, (i64)size, 3, 0x8021 /* shared, anonymous, populated */, -1, 0);
    if ((u64)at > -4096ul)
        fatal("no memory for the test: give the machine more with --memory");
    return (void *)at;
}

static void run_external(void)
{
    static const char *arguments[] = { "/test", 0 };
    static const char *environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", 0 };
    call3(NR_execve, "/test", arguments, environment);
    fatal("the agent program cannot be executed: it must be a static x86-64 program");
}

static void switch_on(const char *path)
{
    i64 file = call3(NR_open, path, 1, 0);
    if (file < 0)
        return;
    call3(NR_write, file, "1", 1);
    call3(NR_close, file, 0, 0);
}

void agent_main(void)
{
    mount("proc", "/proc");
    mount("sysfs", "/sys");
    mount("devtmpfs", "/dev");
    mount("tmpfs", "/tmp");
    i64 console = call3(NR_open, "/dev/console", 2, 0);
    if (console >= 0)
        for (i64 fd = 0; fd < 3; fd++)
            call3(NR_dup2, console, fd, 0);
    if (console > 2)
        call3(NR_close, console, 0, 0);
    shared = map_shared(sizeof *shared);
    program = map_shared(INPUT_SIZE);
    /* A guest without memory is a mistake of the test: better told at once than after minutes of reclaiming. */
    switch_on("/proc/sys/vm/panic_on_oom");
    /*
     * A thread that dies in an oops keeps its locks. If the console's is among them, nothing is ever printed again, not
     * even the oops: only a panic does not ask for that lock.
     */
    switch_on("/proc/sys/kernel/panic_on_oops");
    pin(0, 0);
    load_modules();
    tell_guest();

    i64 length = raddle_call(RADDLE_INPUT, (long)program, INPUT_SIZE, 0);
    /* Other machines take the call for a CPUID of an unknown leaf: some number comes back, and nothing is written. */
    if (program->magic != MAGIC)
        take_own_test();
    else if (length < (i64)sizeof *program)
        fatal("the test input is damaged");
    if (program->flags & FLAG_EXTERNAL)
        run_external();
    data = (u8 *)program + program->data_offset;
    move_others(program->housekeeping, 0);
    if (!alone)
        raddle_threads((int)program->threads);
    run_section(program->setup, 0);
    for (u32 i = 0; i < shared->count && i < RESULTS_MAX; i++)
        if (shared->results[i].kind == 2)
            finish(2);
    if (program->flags & FLAG_MODULES)
        tell_modules();
    run_threads();
    run_section(program->check, 0);
    finish(0);
}

__asm__(".globl _start\n"
        "_start:\n\t"
        "xor %ebp, %ebp\n\t"
        "and $-16, %rsp\n\t"
        "call agent_main\n\t"
        "ud2\n");
