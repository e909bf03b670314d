// Clocks, sleeps and timers; prints only what does not depend on speed.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static volatile int ticks, notified;
static void tick(int n) { (void)n; ticks++; }
static void notify(union sigval v) { notified = v.sival_int; }
static double now(clockid_t c) {
    struct timespec t;
    clock_gettime(c, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    double a = now(CLOCK_MONOTONIC), b = now(CLOCK_REALTIME);
    struct timespec t = {0, 30000000};
    nanosleep(&t, NULL);
    printf("slept: %d %d\n", now(CLOCK_MONOTONIC) - a >= 0.03, now(CLOCK_REALTIME) - b >= 0.03);
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += 1;
    double target = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
    printf("absolute: %d", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL));
    printf(" %d\n", now(CLOCK_MONOTONIC) >= target);
    t.tv_sec = 0;
    printf("in the past: %d\n", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL));
    t.tv_nsec = 1000000000;
    printf("bad: %d %s\n", nanosleep(&t, NULL), strerror(errno));
    printf("bad clock: %s\n", clock_gettime(99, &t) < 0 ? strerror(errno) : "fine");
    signal(SIGALRM, tick);
    struct itimerval iv = {{0, 10000}, {0, 10000}}, old;
    setitimer(ITIMER_REAL, &iv, NULL);
    while (ticks < 5) pause();
    getitimer(ITIMER_REAL, &old);
    printf("interval: %d %ld\n", ticks, (long)old.it_interval.tv_usec);
    memset(&iv, 0, sizeof iv);
    setitimer(ITIMER_REAL, &iv, &old);
    printf("left: %d\n", old.it_value.tv_usec <= 10000);
    alarm(100);
    printf("alarm: %u\n", alarm(0));
    timer_t timer;
    struct sigevent ev;
    memset(&ev, 0, sizeof ev);
    ev.sigev_notify = SIGEV_SIGNAL;
    ev.sigev_signo = SIGALRM;
    timer_create(CLOCK_MONOTONIC, &ev, &timer);
    struct itimerspec spec = {{0, 5000000}, {0, 5000000}};
    ticks = 0;
    timer_settime(timer, 0, &spec, NULL);
    while (ticks < 3) pause();
    timer_gettime(timer, &spec);
    printf("posix timer: %d %d\n", ticks >= 3, spec.it_interval.tv_nsec == 5000000);
    printf("deleted: %d\n", timer_delete(timer));
    ev.sigev_notify = SIGEV_THREAD;
    ev.sigev_notify_function = notify;
    ev.sigev_value.sival_int = 77;
    timer_create(CLOCK_REALTIME, &ev, &timer);
    memset(&spec, 0, sizeof spec);
    spec.it_value.tv_nsec = 1000000;
    timer_settime(timer, 0, &spec, NULL);
    struct timespec brief = {0, 1000000};
    while (!notified) nanosleep(&brief, NULL);
    printf("timer thread: %d\n", notified);
    for (volatile int i = 0; i < 3000000; i++) {}
    printf("cpu time: %d %d %d\n", now(CLOCK_PROCESS_CPUTIME_ID) > 0.0005, now(CLOCK_THREAD_CPUTIME_ID) > 0.0005, clock() > 500);
    struct timeval tv;
    gettimeofday(&tv, NULL);
    printf("same clock: %d %d\n", (long)tv.tv_sec - (long)time(NULL) <= 1, now(CLOCK_REALTIME) - (double)tv.tv_sec < 2);
    struct rusage u;
    struct tms tms;
    printf("usage: %d %d\n", getrusage(RUSAGE_SELF, &u), times(&tms) != (clock_t)-1);
    return 0;
}
