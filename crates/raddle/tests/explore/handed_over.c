/* What goes through the kernel is in order: a pipe, an eventfd with epoll, a signal, the end of a child. With
 * -DTOO_EARLY one value is written after it was announced. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2], event, poller;
static int by_pipe, by_event, by_signal, private_copy = 1;
static volatile sig_atomic_t caught;
static pthread_t first;

static void handler(int number)
{
    caught = by_signal + number - SIGUSR1;
}

static void *producer(void *arg)
{
    const uint64_t one = 1;

#ifndef TOO_EARLY
    by_pipe = 1;
#endif
    if (write(ends[1], "x", 1) != 1)
        return arg;
#ifdef TOO_EARLY
    by_pipe = 1;
#endif
    by_event = 1;
    if (write(event, &one, sizeof one) != sizeof one)
        return arg;
    by_signal = 1;
    pthread_kill(first, SIGUSR1);
    return NULL;
}

static int consume(void)
{
    struct epoll_event ready;
    sigset_t none;
    char byte;

    if (read(ends[0], &byte, 1) != 1)
        return 0;
    int sum = by_pipe;
    if (epoll_wait(poller, &ready, 1, -1) != 1)
        return 0;
    sum += by_event;
    sigemptyset(&none);
    while (!caught)
        sigsuspend(&none);
    return sum + caught;
}

int main(void)
{
    struct epoll_event wanted = {.events = EPOLLIN};
    struct sigaction action = {.sa_handler = handler};
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigset_t blocked;
    pthread_t t;

    first = pthread_self();
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGUSR1, &action, NULL);
    event = eventfd(0, 0);
    poller = epoll_create1(0);
    if (pipe(ends) != 0 || epoll_ctl(poller, EPOLL_CTL_ADD, event, &wanted) != 0)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        *shared = 1;
        private_copy = 2;
        _exit(0);
    }
    private_copy++;
    waitpid(child, NULL, 0);
    private_copy++;
    pthread_create(&t, NULL, producer, NULL);
    int sum = consume();
    pthread_join(t, NULL);
    return sum >= 2 && *shared == 1 && private_copy == 3 ? 0 : 1;
}
