// Handlers, masks, siginfo, alternate stacks, interrupted and restarted calls, synchronous faults.
#define _GNU_SOURCE
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t count, last, depth, deepest, raised;
static volatile int code, value;
static void *volatile addr;
static sigjmp_buf back;

static void plain(int n) { count++; last = n; }
static void info(int n, siginfo_t *i, void *c) {
    (void)c;
    count++;
    last = n;
    code = i->si_code;
    value = i->si_value.sival_int;
    addr = i->si_addr;
}
static void jump(int n, siginfo_t *i, void *c) {
    (void)c;
    last = n;
    code = i->si_code;
    addr = i->si_addr;
    siglongjmp(back, 1);
}
static void nested(int n) {
    depth++;
    if (depth > deepest) deepest = depth;
    if (deepest < 3 && raised++ < 5) raise(n);
    depth--;
}
static void set(int n, void (*f)(int, siginfo_t *, void *), int flags) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = f;
    a.sa_flags = SA_SIGINFO | flags;
    sigaction(n, &a, NULL);
}
static void set_plain(int n, void (*f)(int), int flags) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = f;
    a.sa_flags = flags;
    sigaction(n, &a, NULL);
}
static void fault(const char *name, void (*f)(void), void *expected) {
    if (sigsetjmp(back, 1) == 0) {
        f();
        printf("%s: nothing happened\n", name);
    } else {
        printf("%s: signal %d code %d addr %s\n", name, last, code,
               expected == NULL ? "-" : addr == expected ? "right" : "wrong");
    }
}
static char *page;
static void do_null(void) { *(volatile int *)8 = 1; }
static void do_read_only(void) { page[5] = 1; }
static void do_non_canonical(void) { *(volatile char *)0x8000000000000000ul = 1; }
static void do_divide(void) { volatile int z = 0; volatile int x = 5 / z; (void)x; }
static void do_illegal(void) { __asm__ volatile("ud2"); }
static void do_trap(void) { __asm__ volatile("int3"); }
static void do_hlt(void) { __asm__ volatile("hlt"); }
static void do_call_null(void) { ((void (*)(void))0x10)(); }
static void do_bus(void) {
    FILE *f = tmpfile();
    fputs("x", f);
    fflush(f);
    char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fileno(f), 0);
    volatile char c = p[0];
    (void)c;
    c = p[4096];
    munmap(p, 8192);
}
static void do_float(void) {
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_DIVBYZERO);
    volatile double z = 0;
    volatile double x = 1 / z;
    (void)x;
}
static char overflow(int n) {
    volatile char buffer[4096];
    buffer[0] = (char)n;
    return n == 0 ? 0 : (char)(overflow(n - 1) + buffer[0]);
}
static void do_overflow(void) { overflow(1 << 20); }

static void registers(int n, siginfo_t *i, void *c) {
    (void)n;
    (void)i;
    ucontext_t *u = c;
    // Skip the two bytes of UD2 and change a register that the main program looks at.
    u->uc_mcontext.gregs[REG_RIP] += 2;
    u->uc_mcontext.gregs[REG_RBX] = 4711;
}

static void *reader(void *arg) {
    char c;
    ssize_t r = read(*(int *)arg, &c, 1);
    printf("read in thread: %zd %s\n", r, r < 0 ? strerror(errno) : "");
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    set_plain(SIGUSR1, plain, 0);
    raise(SIGUSR1);
    printf("raise: %d %d\n", count, last);

    sigset_t s, old, pending;
    sigemptyset(&s);
    sigaddset(&s, SIGUSR1);
    sigaddset(&s, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &s, &old);
    count = 0;
    raise(SIGUSR1);
    raise(SIGUSR1);
    sigpending(&pending);
    printf("blocked: %d pending %d\n", count, sigismember(&pending, SIGUSR1));
    set(SIGRTMIN + 1, info, 0);
    union sigval v = {.sival_int = 42};
    sigqueue(getpid(), SIGRTMIN + 1, v);
    v.sival_int = 43;
    sigqueue(getpid(), SIGRTMIN + 1, v);
    siginfo_t got;
    struct timespec none = {0, 0}, soon = {0, 1000000};
    int r = sigtimedwait(&s, &got, &none);
    printf("sigtimedwait: %d code %d\n", r, got.si_code);
    r = sigwaitinfo(&s, &got);
    printf("sigwaitinfo: %d code %d value %d\n", r - SIGRTMIN, got.si_code, got.si_value.sival_int);
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("queued: %d value %d code %d\n", count, value, code);
    sigprocmask(SIG_BLOCK, &s, NULL);
    r = sigtimedwait(&s, NULL, &soon);
    printf("timeout: %d %s\n", r, strerror(errno));

    raise(SIGUSR1);
    count = 0;
    sigset_t empty;
    sigemptyset(&empty);
    r = sigsuspend(&empty);
    printf("sigsuspend: %d %s count %d\n", r, strerror(errno), count);
    sigprocmask(SIG_BLOCK, NULL, &pending);
    printf("mask after: %d\n", sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_SETMASK, &old, NULL);

    set_plain(SIGUSR2, nested, SA_NODEFER);
    raise(SIGUSR2);
    printf("nodefer: %d\n", deepest);
    deepest = depth = raised = 0;
    set_plain(SIGUSR2, nested, 0);
    raise(SIGUSR2);
    printf("deferred: %d\n", deepest);
    set_plain(SIGUSR2, plain, SA_RESETHAND);
    raise(SIGUSR2);
    struct sigaction now;
    sigaction(SIGUSR2, NULL, &now);
    printf("resethand: %d\n", now.sa_handler == SIG_DFL);

    stack_t alt = {.ss_sp = malloc(65536), .ss_size = 65536}, was;
    sigaltstack(&alt, &was);
    printf("altstack before: %d\n", was.ss_flags == SS_DISABLE);
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int n = 0; n < 6; n++) {
        int all[] = {SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS, SIGSYS};
        set(all[n], jump, SA_ONSTACK);
    }
    fault("null", do_null, (void *)8);
    fault("read-only", do_read_only, page + 5);
    fault("non-canonical", do_non_canonical, NULL);
    fault("divide", do_divide, NULL);
    fault("illegal", do_illegal, NULL);
    fault("trap", do_trap, NULL);
    fault("hlt", do_hlt, NULL);
    fault("call null", do_call_null, (void *)0x10);
    fault("bus", do_bus, NULL);
    fault("float", do_float, NULL);
    fault("overflow", do_overflow, NULL);

    set(SIGILL, registers, 0);
    unsigned long rbx;
    __asm__ volatile("mov $1, %%rbx\n\tud2\n\tmov %%rbx, %0" : "=r"(rbx) : : "rbx", "memory");
    printf("register changed in handler: %lu\n", rbx);

    int p[2];
    if (pipe(p) != 0) return 1;
    set_plain(SIGALRM, plain, 0);
    ualarm(1000, 0);
    char c;
    r = (int)read(p[0], &c, 1);
    printf("interrupted read: %d %s\n", r, strerror(errno));
    set_plain(SIGALRM, plain, SA_RESTART);
    if (fork() == 0) {
        struct timespec t = {0, 50000000};
        nanosleep(&t, NULL);
        if (write(p[1], "k", 1) != 1) return 1;
        _exit(0);
    }
    ualarm(1000, 0);
    r = (int)read(p[0], &c, 1);
    printf("restarted read: %d %c\n", r, c);
    wait(NULL);
    struct timespec want = {1, 0}, rest = {0, 0};
    ualarm(1000, 0);
    r = nanosleep(&want, &rest);
    printf("interrupted sleep: %d %s rest %s\n", r, strerror(errno),
           rest.tv_sec == 0 && rest.tv_nsec > 900000000 ? "sensible" : "wrong");

    pthread_t t;
    set_plain(SIGUSR1, plain, 0);
    pthread_create(&t, NULL, reader, &p[0]);
    struct timespec brief = {0, 10000000};
    nanosleep(&brief, NULL);
    pthread_kill(t, SIGUSR1);
    pthread_join(t, NULL);

    signal(SIGPIPE, SIG_IGN);
    close(p[0]);
    r = (int)write(p[1], "x", 1);
    printf("ignored SIGPIPE: %d %s\n", r, strerror(errno));
    fflush(stdout);
    for (int n = 0; n < 3; n++) {
        int sig[] = {SIGTERM, SIGABRT, SIGKILL};
        pid_t child = fork();
        if (child == 0) {
            signal(SIGTERM, SIG_DFL);
            if (sig[n] == SIGABRT) abort();
            raise(sig[n]);
            _exit(9);
        }
        int status;
        waitpid(child, &status, 0);
        printf("killed by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
    }
    return 7;
}
