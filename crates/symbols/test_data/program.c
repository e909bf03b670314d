#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    int value;
};

struct queue {
    long length;
    struct node *head;
    struct node slots[4];
};

struct object {
    int id;
    struct queue queue;
    _Atomic int refs;
    union {
        int whole;
        char bytes[4];
    };
    struct node last;
};

struct object obj;
static int table[3][5];
_Atomic long counter;
volatile int flag;
atomic_int total;
const char *const message = "hello";
_Thread_local int per_thread;

static inline int square(int x)
{
    return x * x + flag; // MARK square
}

__attribute__((noinline)) int work(int n)
{ // MARK open
    static int calls;
    calls++;               // MARK calls
    int sum = square(n);   // MARK first
    sum += square(n + calls); // MARK second
    return sum;
}

__attribute__((noinline)) int alias_target(void) { return flag + 1; }
int alias_of(void) __attribute__((alias("alias_target")));

int main(int argc, char **argv)
{
    char buffer[32];
    strcpy(buffer, argv[0] + strlen(argv[0]) / 2);
    table[argc % 3][1] = work(argc);
    obj.queue.slots[2].value = alias_of();
    counter++;
    total++;
    per_thread++;
    printf("%s %s %d %d\n", message, buffer, table[0][0], per_thread); // MARK print
    return 0;
}
