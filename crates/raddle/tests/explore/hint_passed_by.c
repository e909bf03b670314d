#include <pthread.h>
#include <stdio.h>

#include "raddle.h"

static void *nothing(void *a) { return a; }

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc > 1)
        raddle_snapshot();
    pthread_create(&thread, 0, nothing, argv);
    pthread_join(thread, 0);
    return 0;
}
