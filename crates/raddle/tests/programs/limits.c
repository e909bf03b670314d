// Programs that end badly, one per argument.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *lock(void *m) {
    pthread_mutex_lock(m);
    return NULL;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "exit";
    if (strcmp(mode, "loop") == 0) {
        puts("looping");
        fflush(stdout);
        for (;;) {}
    }
    if (strcmp(mode, "bomb") == 0)
        for (;;) fork();
    if (strcmp(mode, "hog") == 0)
        for (;;) memset(malloc(1 << 20), 1, 1 << 20);
    if (strcmp(mode, "huge") == 0) puts(malloc((size_t)1 << 34) == NULL ? "refused" : "granted");
    if (strcmp(mode, "crash") == 0) *(volatile int *)0x1234 = 1;
    if (strcmp(mode, "deadlock") == 0) {
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_t t;
        pthread_mutex_lock(&m);
        pthread_create(&t, NULL, lock, &m);
        pthread_join(t, NULL);
    }
    return 77;
}
