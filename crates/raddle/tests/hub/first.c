/* The thread that comes first reads a file of its own, so that only a serial order that the first run does not have needs
 * the other file; and tickets may be given twice, so that serial orders are asked for. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "raddle.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_taken;
static volatile long tickets;

static void take(const char *path) {
    raddle_begin("take");
    pthread_mutex_lock(&lock);
    if (!is_taken) {
        is_taken = 1;
        FILE *file = fopen(path, "r");
        if (!file)
            abort();
        fclose(file);
    }
    pthread_mutex_unlock(&lock);
    long ticket = tickets;
    tickets = ticket + 1;
    raddle_result(ticket);
    raddle_end_operation();
}

static void *other(void *unused) {
    take("b");
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    take("a");
    pthread_join(thread, NULL);
    return 0;
}
