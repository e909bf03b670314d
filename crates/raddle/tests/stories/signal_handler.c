// The handler of a signal and a thread count in one variable.
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static volatile long events;
static pthread_t main_thread;

static void on_signal(int number) {
    (void)number;
    events = events + 1;
}

static void *sender(void *argument) {
    (void)argument;
    pthread_kill(main_thread, SIGUSR1);
    events = events + 1;
    return NULL;
}

int main(void) {
    signal(SIGUSR1, on_signal);
    main_thread = pthread_self();
    pthread_t thread;
    pthread_create(&thread, NULL, sender, NULL);
    pthread_join(thread, NULL);
    assert(events == 2);
    return 0;
}
