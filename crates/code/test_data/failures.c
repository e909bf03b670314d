/* Places where programs notice that something is wrong, and what decides it. */
#include <assert.h>
#include <stdio.h>

extern volatile int flag, other, far, *pointer;
volatile int flag, other, far, *pointer;
int sink;

void asserted(void)
{
    assert(flag == 3);
}

void reported(void)
{
    if (flag > 7)
        perror("too large");
}

/* The output depends on what it prints. */
void printed(void)
{
    printf("%d\n", other);
}

__attribute__((noinline)) static int stopped(void)
{
    return flag;
}

/* What is read before the loop cannot keep it going; what a function reads in every round can. */
void waits(void)
{
    int limit = far;
    int rounds = 0;

    while (!stopped())
        rounds++;
    sink = rounds + limit;
}

/* Two steps through a pointer. */
void chained(void)
{
    volatile int *p = (volatile int *)pointer;

    assert(*p != 0);
}

/* Not close enough: a long chain of arithmetic. */
void remote(void)
{
    unsigned x = far;

    x = x * 3 + 1;
    x ^= x >> 3;
    x = x * 5 + 7;
    x ^= x >> 2;
    x = x * 9 + 4;
    assert(x != 12345);
}

int main(void)
{
    asserted();
    reported();
    printed();
    waits();
    chained();
    remote();
    return 0;
}
