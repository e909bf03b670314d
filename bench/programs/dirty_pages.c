// A thread writes to as many pages as the argument says: what a restore then has to undo.
#include <pthread.h>
#include <stdlib.h>

#define PAGE 4096L

static char *memory;
static long pages;

static void *dirty(void *unused) {
    for (long i = 0; i < pages; i++) memory[i * PAGE] = 1;
    return unused;
}

int main(int argc, char **argv) {
    pages = argc > 1 ? atol(argv[1]) : 1;
    memory = malloc(pages * PAGE + 1);
    for (long i = 0; i < pages; i++) memory[i * PAGE] = 2;
    pthread_t thread;
    if (pthread_create(&thread, NULL, dirty, NULL) != 0) return 1;
    pthread_join(thread, NULL);
    return 0;
}
