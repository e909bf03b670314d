// Two threads at a time, as many times as asked: each works on its own stack and on its own heap block, which the
// next two get again. Only the sum is shared.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int sum;

static void *work(void *unused) {
    volatile int on_stack[4];
    volatile int *on_heap = malloc(4 * sizeof *on_heap);
    for (int i = 0; i < 4; i++) {
        on_stack[i] = i;
        on_heap[i] = on_stack[i] + 1;
    }
    atomic_fetch_add(&sum, on_heap[3]);
    free((void *)on_heap);
    return unused;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    for (int round = 0; round < rounds; round++) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    }
    return sum != 8 * rounds;
}
