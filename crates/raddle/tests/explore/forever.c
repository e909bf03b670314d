#include <pthread.h>
#include <stdio.h>

static void *nothing(void *a) { return a; }

/* Computes for ever: before its first thread, or with an argument in one. */
static volatile unsigned long turns = 1;
static void *spin(void *a) {
    while (turns)
        turns += 2;
    return a;
}
int main(int argc, char **argv) {
    pthread_t one, two;
    if (argc == 1)
        spin(argv);
    pthread_create(&one, 0, nothing, 0);
    pthread_create(&two, 0, spin, 0);
    pthread_join(two, 0);
    pthread_join(one, 0);
    return 0;
}
