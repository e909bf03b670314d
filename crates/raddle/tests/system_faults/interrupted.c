/* A program with a handler for SIGUSR1 that reads from a pipe; with -DFIXED it tries again after EINTR. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int ends[2];

static void handler(int number)
{
    (void)number;
}

static void *writer(void *arg)
{
    while (write(ends[1], "x", 1) != 1)
        ;
    return arg;
}

int main(void)
{
    pthread_t t;
    char c;
    ssize_t n;
    struct sigaction action = {.sa_handler = handler};

    sigaction(SIGUSR1, &action, NULL);
    if (pipe(ends))
        return 2;
    pthread_create(&t, NULL, writer, NULL);
    do
        n = read(ends[0], &c, 1);
#ifdef FIXED
    while (n < 0 && errno == EINTR);
#else
    while (0);
#endif
    assert(n == 1);
    pthread_join(t, NULL);
    return 0;
}
