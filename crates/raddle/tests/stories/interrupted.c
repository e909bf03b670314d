// A list that a signal handler walks while main makes it longer.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct node {
    struct node *next;
};

static struct node *list;
static int count;
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
    main_thread = pthread_self();
    pthread_create(&thread, NULL, sender, NULL);
    for (int i = 0; i < 3; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = list;
        list = node;
        count++;
    }
    pthread_join(thread, NULL);
    return 0;
}
