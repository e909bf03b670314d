/* A variable of a function in memory that the file has bytes for, and one far behind it in memory that it has none for. */
#include <assert.h>
#include <pthread.h>

static void *add(void *argument) {
    static struct { int hits, misses; } count = {.hits = 1};
    static struct { char name[100000]; int used; } table;
    int seen = count.misses;
    count.misses = seen + 1;
    table.used = count.misses;
    assert(count.misses == seen + 1 && table.used == count.misses);
    return argument;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, add, 0);
    pthread_create(&two, 0, add, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
