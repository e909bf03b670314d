#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long regs[17];
volatile int sink;

static void dump(void)
{
    char line[512];
    unsigned long low = 0, high = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        printf("map %s", line);
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= regs[7] && regs[7] < to) {
            low = regs[7] & ~7ul;
            high = to;
        }
    }
    for (int i = 0; i < 17; i++)
        printf("reg %d %lx\n", i, regs[i]);
    for (unsigned long at = low; at < high; at += 8)
        printf("mem %lx %lx\n", at, *(unsigned long *)at);
    fflush(stdout);
    exit(0);
}

#define CAPTURE()                                                                     \
    __asm__ volatile("movq %%rbx, 24(%0)\n\tmovq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\t" \
                     "movq %%r12, 96(%0)\n\tmovq %%r13, 104(%0)\n\tmovq %%r14, 112(%0)\n\t" \
                     "movq %%r15, 120(%0)\n\tleaq 1f(%%rip), %%rax\n\tmovq %%rax, 128(%0)\n1:\tnop" \
                     :                                                                \
                     : "r"(regs)                                                      \
                     : "rax", "memory")

__attribute__((noinline)) void leaf(long a, long b)
{
    volatile long first = a + 1;
    volatile struct { long x, y; } pair = { b, a };
    CAPTURE(); // MARK capture
    sink = (int)(first + pair.x);
    dump();
}

__attribute__((noinline)) void middle(long a)
{
    char buffer[100 + 1];
    memset(buffer, (int)a, sizeof buffer);
    leaf(a + buffer[7], a); // MARK middle
    sink = buffer[3];
}

__attribute__((noinline)) void handler(int number)
{
    middle(number); // MARK handler
    sink++;
}

__attribute__((noinline)) int outer(int n)
{
    if (n > 1) {
        volatile int *nowhere = 0;
        signal(SIGSEGV, handler);
        *nowhere = 1; // MARK fault
    }
    // An array of variable length makes this function find its frame by RBP, which its callees leave alone.
    char space[n * 16 + 1];
    memset(space, n, sizeof space);
    sink = space[n];
    middle(n); // MARK outer
    return sink + n;
}

int main(int argc, char **argv)
{
    (void)argv;
    sink = outer(argc); // MARK main
    return sink;
}
