// The worker uses the connection before anybody has made it: nothing was written when it reads.
#include <pthread.h>
#include <stdlib.h>

struct connection {
    long timeout;
    int descriptor;
};

static struct connection *connection;
static long used;

static void *worker(void *argument) {
    (void)argument;
    used = connection->descriptor;
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    struct connection *fresh = malloc(sizeof *fresh);
    fresh->timeout = 30;
    fresh->descriptor = 3;
    connection = fresh;
    pthread_join(thread, NULL);
    free(fresh);
    return 0;
}
