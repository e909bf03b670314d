// Both closers see that the session is open, and both free it.
#include <pthread.h>
#include <stdlib.h>

struct session {
    int open;
    char *name;
};

static struct session *session;

static void close_session(struct session *it) {
    if (it->open) {
        it->open = 0;
        free(it->name);
    }
}

static void *closer(void *argument) {
    (void)argument;
    close_session(session);
    return NULL;
}

int main(void) {
    session = calloc(1, sizeof *session);
    session->open = 1;
    session->name = malloc(32);
    pthread_t one, two;
    pthread_create(&one, NULL, closer, NULL);
    pthread_create(&two, NULL, closer, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
