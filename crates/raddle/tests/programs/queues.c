/* POSIX message queues, as a program sees them: order, waiting, time-outs, notification, permissions of descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *NAME = "/raddle-queues";

static void check(const char *what, long got) {
    if (got < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, got);
}

static void receive(mqd_t queue) {
    char text[64];
    unsigned priority = 99;
    ssize_t size = mq_receive(queue, text, sizeof text, &priority);
    if (size < 0)
        check("receive", size);
    else
        printf("receive: %.*s, priority %u\n", (int)size, text, priority);
}

static void attributes(mqd_t queue) {
    struct mq_attr is;
    mq_getattr(queue, &is);
    printf("attributes: %s, %ld of %ld messages of %ld bytes\n", is.mq_flags & O_NONBLOCK ? "nonblocking" : "blocking",
           is.mq_curmsgs, is.mq_maxmsg, is.mq_msgsize);
}

static volatile sig_atomic_t told, told_value;

static void on_message(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    told = info->si_code == SI_MESGQ && info->si_pid == getpid();
    told_value = info->si_value.sival_int;
}

static void *sender(void *queue) {
    usleep(1000);
    if (mq_send(*(mqd_t *)queue, "late", 4, 3))
        check("send to a waiting receiver", -1);
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct mq_attr wanted = {.mq_maxmsg = 3, .mq_msgsize = 64};
    check("open what is not there", mq_open(NAME, O_RDWR));
    check("a name in a folder", mq_open("/a/b", O_RDWR | O_CREAT, 0600, &wanted));
    struct mq_attr none = {.mq_maxmsg = 0, .mq_msgsize = 64};
    check("no messages", mq_open(NAME, O_RDWR | O_CREAT, 0600, &none));
    mqd_t queue = mq_open(NAME, O_RDWR | O_CREAT | O_EXCL, 0600, &wanted);
    printf("open: %d\n", queue >= 0);
    check("open again", mq_open(NAME, O_RDWR | O_CREAT | O_EXCL, 0600, &wanted));
    printf("closes on exec: %d\n", fcntl(queue, F_GETFD) == FD_CLOEXEC);
    attributes(queue);

    check("send low", mq_send(queue, "low", 3, 1));
    check("send high", mq_send(queue, "high", 4, 7));
    check("send low again", mq_send(queue, "low 2", 5, 1));
    struct pollfd ready = {.fd = queue, .events = POLLIN | POLLOUT};
    poll(&ready, 1, 0);
    printf("full: in %d, out %d\n", !!(ready.revents & POLLIN), !!(ready.revents & POLLOUT));
    struct timespec past = {.tv_sec = 1};
    check("send to a full queue", mq_timedsend(queue, "x", 1, 0, &past));
    check("too long", mq_send(queue, (char[65]){0}, 65, 0));
    check("priority too high", mq_send(queue, "x", 1, 32768));
    check("too little room", mq_receive(queue, (char[8]){0}, 8, NULL));
    attributes(queue);
    for (int i = 0; i < 3; i++)
        receive(queue);
    struct timespec wrong = {.tv_nsec = 1000000000};
    check("a time that is none", mq_timedreceive(queue, (char[64]){0}, 64, NULL, &wrong));
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 1;
    check("receive in time", mq_timedreceive(queue, (char[64]){0}, 64, NULL, &soon));

    pthread_t thread;
    pthread_create(&thread, NULL, sender, &queue);
    receive(queue);
    pthread_join(thread, NULL);

    struct sigaction action = {.sa_sigaction = on_message, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42};
    check("notify", mq_notify(queue, &event));
    check("notify twice", mq_notify(queue, &event));
    check("send", mq_send(queue, "first", 5, 0));
    printf("told: %d, value %d\n", (int)told, (int)told_value);
    told = 0;
    check("send", mq_send(queue, "second", 6, 0));
    printf("told again: %d\n", (int)told);
    check("take the notification back", mq_notify(queue, NULL));

    if (fork() == 0) {
        mqd_t reader = mq_open(NAME, O_RDONLY | O_NONBLOCK);
        attributes(reader);
        check("send by a reader", mq_send(reader, "x", 1, 0));
        receive(reader);
        receive(reader);
        receive(reader);
        _exit(0);
    }
    wait(NULL);
    struct mq_attr blocking = {.mq_flags = O_NONBLOCK};
    check("nonblocking", mq_setattr(queue, &blocking, NULL));
    receive(queue);
    check("no queue", mq_send(0, "x", 1, 0));
    check("unlink", mq_unlink(NAME));
    check("unlink again", mq_unlink(NAME));
    check("open after that", mq_open(NAME, O_RDWR));
    check("send after that", mq_send(queue, "still", 5, 0));
    receive(queue);
    check("close", mq_close(queue));
    check("close again", mq_close(queue));
    return 0;
}
