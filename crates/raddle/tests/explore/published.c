/* A value is published by an atomic flag, whose accesses are plain moves on this processor. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct message {
    int text;
    atomic_int is_there;
};

static void *sender(void *arg)
{
    struct message *message = arg;

    message->text = 42;
    atomic_store_explicit(&message->is_there, 1, memory_order_release);
    return NULL;
}

int main(void)
{
    struct message *message = calloc(1, sizeof *message);
    pthread_t t;

    pthread_create(&t, NULL, sender, message);
    while (!atomic_load_explicit(&message->is_there, memory_order_acquire))
        sched_yield();
    int text = message->text;
    pthread_join(t, NULL);
    free(message);
    return text == 42 ? 0 : 1;
}
