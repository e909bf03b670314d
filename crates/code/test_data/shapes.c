#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

int volatile flag;
atomic_int lock_word;
struct box {
    int id;
    int volatile ready;
    struct box *next;
};
struct box *volatile shared_box;
int sink[16];
int volatile noise;

int straight(int a) { return a * 3 + 1; }

int diamond(int a)
{
    if (a > 3)
        flag = 1;
    else
        flag = 2;
    return a;
}

long nested(int n)
{
    long sum = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++)
            sum += sink[(i ^ j) & 15];
        flag = (int)sum;
    }
    return sum;
}

int pick(unsigned which)
{
    switch (which) {
    case 0: return flag + 11;
    case 1: flag = 7; return 3;
    case 2: return sink[2] * 5;
    case 3: sink[3] = 1; return 9;
    case 4: return sink[4] - flag;
    case 5: flag = 0; return 100;
    case 6: return lock_word;
    default: return -1;
    }
}

int checked(int a)
{
    if (a < 0)
        abort();
    return a + flag;
}

int tail(int a) { return straight(a + 1); }

void wait_flag(void)
{
    while (!flag)
        ;
}

void wait_pause(struct box *box)
{
    while (box->ready == 0)
        __builtin_ia32_pause();
}

void wait_through(void)
{
    while (shared_box->ready == 0)
        ;
}

int volatile *volatile published;

void wait_local(void)
{
    int volatile done = 0;
    published = &done;
    while (!done)
        ;
}

void wait_yield(void)
{
    while (!flag)
        sched_yield();
}

int wait_bounded(void)
{
    for (int i = 0; i < 1000; i++) {
        if (flag)
            return 1;
        __builtin_ia32_pause();
    }
    return 0;
}

void lock_exchange(void)
{
    while (atomic_exchange(&lock_word, 1))
        ;
}

void lock_compare(void)
{
    int expected;
    do
        expected = 0;
    while (!atomic_compare_exchange_weak(&lock_word, &expected, 1));
}

void lock_polite(void)
{
    while (atomic_exchange(&lock_word, 1))
        while (lock_word)
            __builtin_ia32_pause();
}

int no_spin_count(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += sink[i & 15];
    return sum;
}

int no_spin_list(struct box *box)
{
    int n = 0;
    while (box) {
        box = box->next;
        n++;
    }
    return n;
}

int no_spin_walk(struct box *box)
{
    while (box->ready)
        box = box->next;
    return box->id;
}

int no_spin_local(void)
{
    int volatile i = 0;
    while (i < 100)
        i++;
    return i;
}

int no_spin_search(int *array, int n)
{
    for (int i = 0; i < n; i++)
        if (array[i] == flag)
            return i;
    return -1;
}

void no_spin_store(void)
{
    while (!flag)
        noise++;
}

int no_spin_call(void)
{
    while (!straight(flag))
        rand();
    return 0;
}

void no_spin_add(void)
{
    int old = lock_word;
    while (!atomic_compare_exchange_weak(&lock_word, &old, old * 2 + 1))
        ;
}

void no_spin_set(void)
{
    int old, new;
    do {
        old = lock_word;
        new = old | 2;
    } while (!atomic_compare_exchange_weak(&lock_word, &old, new));
}

void lock_test_first(void)
{
    for (;;) {
        int expected = 0;
        if (lock_word == 0 && atomic_compare_exchange_strong(&lock_word, &expected, 1))
            return;
        __builtin_ia32_pause();
    }
}

void no_spin_ticket(void)
{
    while (atomic_fetch_add(&lock_word, 1) < 5)
        ;
}

void die(int code)
{
    noise = code;
    exit(code);
}

void die_harder(int code)
{
    if (code > 3)
        die(code);
    flag = code;
    die(code + 1);
}

void forever(void)
{
    for (;;)
        noise++;
}

int strict(int a)
{
    if (a < 0)
        die_harder(a);
    return a + noise;
}

int main(void) { return pick(3) + checked(2); }
