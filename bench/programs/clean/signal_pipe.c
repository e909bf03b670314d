/* A signal handler that only writes to a pipe, and a thread that reads it. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static int ends[2];
static void handler(int number)
{
    char c = (char)number;
    if (write(ends[1], &c, 1) != 1)
        _exit(3);
}
static void *raiser(void *arg)
{
    kill(getpid(), SIGUSR1);
    return arg;
}
int main(void)
{
    pthread_t t;
    char c = 0;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (pipe(ends))
        return 2;
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&t, NULL, raiser, NULL);
    while (read(ends[0], &c, 1) != 1)
        ;
    assert(c == SIGUSR1);
    pthread_join(t, NULL);
    return 0;
}
