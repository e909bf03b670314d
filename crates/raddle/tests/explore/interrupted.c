// A list that a signal handler walks while main makes it longer. With FIXED, the signal waits until both halves are done.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct node {
    struct node *next;
};

static struct node *list;
static int count;
static sigset_t usr1;
static pthread_t main_thread;

static void on_signal(int number) {
    (void)number;
    int seen = 0;
    for (struct node *node = list; node; node = node->next)
        seen++;
    if (seen != count)
        _exit(5);
}

static void *sender(void *unused) {
    pthread_kill(main_thread, SIGUSR1);
    return unused;
}

int main(void) {
    pthread_t thread;
    signal(SIGUSR1, on_signal);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    main_thread = pthread_self();
    pthread_create(&thread, NULL, sender, NULL);
    for (int i = 0; i < 3; i++) {
        struct node *node = malloc(sizeof *node);
#ifdef FIXED
        pthread_sigmask(SIG_BLOCK, &usr1, NULL);
#endif
        node->next = list;
        list = node;
        count++;
#ifdef FIXED
        pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
#endif
    }
    pthread_join(thread, NULL);
    return 0;
}
