/* Invalid pointers that the access itself finds. Where the compiler removed a comparison, it left an entry in the
   section raddle_faults: which instruction, which site, how the pointer is recognised, where re-execution begins. The
   handler of SIGSEGV decides as a failing edge would: it continues in a caller that is prepared, or at the beginning of
   the region.

   All other faults, and those after the attempts are exhausted, are the program's own: its handler is called with
   everything as it was, or the signal's default happens at the same instruction. The program's calls of sigaction and
   the like come here. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* Known to crates/harden-plugin/cpp/faults.cpp. Places are relative to the field itself. */
struct fault {
    int32_t at;
    int32_t again;
    int32_t site;
    uint32_t bound;
    uint16_t how;
    uint16_t levels;
};

/* How a pointer below the bound is recognised: by the register of this number; by the address of the access, when only
   a sum is left of the pointer; by a call that went there, when `at` is where it would have returned. The last kind is
   no access of the program's: it asks whether a caller can be re-executed, and goes on at `again` if not. */
enum { BY_ADDRESS = 16, BY_CALL = 17, ON_PURPOSE = 18 };

/* What may have been added to a pointer that is recognised by the address. */
#define SUM_MAX 0x100000

extern const struct fault __start_raddle_faults[] __attribute__((weak)) HIDDEN;
extern const struct fault __stop_raddle_faults[] __attribute__((weak)) HIDDEN;

/* One per program and shared library. */
#define TABLES_MAX 256
struct table {
    const struct fault *start;
    const struct fault *stop;
};
static struct table tables[TABLES_MAX];
static int is_installed;

/* What the program wants to happen. */
static struct sigaction wanted;

HIDDEN int faults_are_linked;

static uintptr_t place(const int32_t *field)
{
    return (uintptr_t)field + (intptr_t)*field;
}

static const struct fault *fault_at(uintptr_t at)
{
    for (size_t i = 0; i < TABLES_MAX; i++) {
        const struct fault *fault = __atomic_load_n(&tables[i].start, __ATOMIC_ACQUIRE);
        if (fault == NULL)
            continue;
        for (; fault < tables[i].stop; fault++)
            if (place(&fault->at) == at)
                return fault;
    }
    return NULL;
}

static uintptr_t register_of(uint32_t number, const ucontext_t *context)
{
    static const uint8_t order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                      REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return (uintptr_t)context->uc_mcontext.gregs[order[number & 15]];
}

/* The entry of a fault that is a failed check. A call to an invalid pointer faults at its target, with the place to
   return to on the stack. */
static const struct fault *failed_check(const siginfo_t *info, const ucontext_t *context, uintptr_t *at)
{
    const greg_t *registers = context->uc_mcontext.gregs;
    uintptr_t address = (uintptr_t)info->si_addr;
    *at = (uintptr_t)registers[REG_RIP];
    if (*at == address && address < SUM_MAX) {
        *at = *(const uintptr_t *)registers[REG_RSP];
        const struct fault *called = fault_at(*at);
        return called != NULL && called->how == BY_CALL && address < called->bound ? called : NULL;
    }
    const struct fault *fault = fault_at(*at);
    if (fault == NULL || fault->how == BY_CALL)
        return NULL;
    if (fault->how == ON_PURPOSE)
        return fault;
    if (fault->how == BY_ADDRESS)
        return address < (uintptr_t)fault->bound + SUM_MAX ? fault : NULL;
    return register_of(fault->how, context) < fault->bound ? fault : NULL;
}

static void continue_in(ucontext_t *context, const struct prepared *prepared)
{
    static const uint8_t order[8] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15, REG_RSP, REG_RIP};
    for (size_t i = 0; i < 8; i++)
        context->uc_mcontext.gregs[order[i]] = (greg_t)prepared->registers[i];
    context->uc_mcontext.gregs[REG_RAX] = 0;
    context->uc_mcontext.gregs[REG_RDX] = 0;
}

/* Does what the failing edge of the site would have done; 0 if the original failure shall happen. */
static int re_executes(const siginfo_t *info, ucontext_t *context)
{
    uintptr_t at;
    const struct fault *fault = failed_check(info, context, &at);
    if (fault == NULL)
        return 0;
    greg_t *registers = context->uc_mcontext.gregs;
    struct raddle_site *site = (struct raddle_site *)place(&fault->site);
    struct prepared prepared;
    if (fault->how == BY_CALL) {
        /* As if it had not been called; if it fails after all, as if it had. */
        registers[REG_RIP] = (greg_t)at;
        registers[REG_RSP] += 8;
    }
    if (fault->levels > 0 && find_prepared != NULL && find_prepared(&prepared, fault->levels, at) &&
        raddle_harden_retry(site, prepared.registers[6])) {
        continue_in(context, &prepared);
        return 1;
    }
    if (fault->how == ON_PURPOSE) {
        registers[REG_RIP] = (greg_t)place(&fault->again);
        return 1;
    }
    if (fault->again != 0 && raddle_harden_retry(site, (uintptr_t)registers[REG_RSP])) {
        registers[REG_RIP] = (greg_t)place(&fault->again);
        return 1;
    }
    if (fault->how == BY_CALL) {
        registers[REG_RIP] = (greg_t)info->si_addr;
        registers[REG_RSP] -= 8;
    }
    return 0;
}

/* The default at the very instruction: take our handler away and fault again. */
static void die(const siginfo_t *info)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigaction(SIGSEGV, &by_default, NULL);
    if (info->si_code <= 0)
        raw_syscall(SYS_tgkill, raw_syscall(SYS_getpid, 0, 0, 0, 0), raw_syscall(SYS_gettid, 0, 0, 0, 0), SIGSEGV, 0);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    struct sigaction next = wanted;
    if (next.sa_handler == SIG_IGN && info->si_code <= 0)
        return;
    if (next.sa_handler == SIG_DFL || next.sa_handler == SIG_IGN) {
        die(info);
        return;
    }
    if (next.sa_flags & SA_RESETHAND)
        wanted.sa_handler = SIG_DFL;
    if (!(next.sa_flags & SA_NODEFER))
        sigaddset(&next.sa_mask, SIGSEGV);
    /* The old mask comes back when the handler returns. */
    pthread_sigmask(SIG_BLOCK, &next.sa_mask, NULL);
    if (next.sa_flags & SA_SIGINFO)
        next.sa_sigaction(number, info, context);
    else
        next.sa_handler(number);
}

static void on_fault(int number, siginfo_t *info, void *data)
{
    int saved = errno;
    int is_fault = info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR;
    if (!is_fault || !re_executes(info, data))
        pass_on(number, info, data);
    errno = saved;
}

static void install(void)
{
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    if (sigaction(SIGSEGV, &ours, &wanted) == 0)
        is_installed = 1;
}

void raddle_harden_add_faults(const struct fault *start, const struct fault *stop)
{
    if (!is_installed)
        install();
    for (size_t i = 0; i < TABLES_MAX; i++) {
        const struct fault *none = NULL;
        if (tables[i].start != NULL)
            continue;
        tables[i].stop = stop;
        if (__atomic_compare_exchange_n(&tables[i].start, &none, start, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    }
}

void raddle_harden_drop_faults(const struct fault *start)
{
    for (size_t i = 0; i < TABLES_MAX; i++)
        if (tables[i].start == start)
            __atomic_store_n(&tables[i].start, NULL, __ATOMIC_RELEASE);
}

__attribute__((constructor(101))) static void add_own(void)
{
    if (&__start_raddle_faults[0] != &__stop_raddle_faults[0])
        raddle_harden_add_faults(__start_raddle_faults, __stop_raddle_faults);
}

__attribute__((destructor(101))) static void drop_own(void)
{
    raddle_harden_drop_faults(__start_raddle_faults);
}

static const sigset_t *without_faults(const sigset_t *set, sigset_t *copy)
{
    if (set == NULL || !is_installed)
        return set;
    *copy = *set;
    sigdelset(copy, SIGSEGV);
    return copy;
}

/* In place of the program's own calls: SIGSEGV stays ours, what the program wants is kept and obeyed. */
int raddle_harden_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (number != SIGSEGV || !is_installed) {
        struct sigaction copy;
        if (action != NULL && is_installed) {
            copy = *action;
            sigdelset(&copy.sa_mask, SIGSEGV);
            action = &copy;
        }
        return sigaction(number, action, old);
    }
    struct sigaction before = wanted;
    if (action != NULL)
        wanted = *action;
    if (old != NULL)
        *old = before;
    return 0;
}

sighandler_t raddle_harden_signal(int number, sighandler_t handler)
{
    if (number != SIGSEGV || !is_installed)
        return signal(number, handler);
    sighandler_t before = wanted.sa_handler;
    memset(&wanted, 0, sizeof wanted);
    wanted.sa_handler = handler;
    wanted.sa_flags = SA_RESTART;
    return before;
}

/* A fault while SIGSEGV is blocked would end the process at once, so it never is. */
int raddle_harden_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t copy;
    return sigprocmask(how, how == SIG_UNBLOCK ? set : without_faults(set, &copy), old);
}

int raddle_harden_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t copy;
    return pthread_sigmask(how, how == SIG_UNBLOCK ? set : without_faults(set, &copy), old);
}
