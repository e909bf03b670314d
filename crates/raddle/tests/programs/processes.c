// fork, vfork, execve, wait in all forms, groups, sessions, orphans, job control.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

extern char **environ;
static volatile int children;
static void on_child(int n) { (void)n; children++; }
static void pause_ms(int ms) {
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000l};
    while (nanosleep(&t, &t) != 0) {}
}
static pid_t child_exits(int status, int ms) {
    fflush(stdout);
    pid_t p = fork();
    if (p == 0) {
        pause_ms(ms);
        _exit(status);
    }
    return p;
}
static void *exec_thread(void *self) {
    char *args[] = {self, "child", "from", "thread", NULL};
    char *env[] = {"ONLY=this", NULL};
    execve(self, args, env);
    return NULL;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        printf("%s", getpid() == getppid() ? "?" : "child:");
        for (int i = 1; i < argc; i++) printf(" %s", argv[i]);
        for (char **e = environ; *e; e++) printf(" [%s]", *e);
        printf(" fd9 %s\n", fcntl(9, F_GETFD) < 0 ? strerror(errno) : "open");
        return 5;
    }
    int status, x = 1;
    pid_t p = child_exits(17, 0);
    pid_t w = waitpid(p, &status, 0);
    printf("exit: %d %d\n", w == p, WEXITSTATUS(status));
    w = wait(&status);
    printf("none left: %d %s\n", w, strerror(errno));
    p = child_exits(1, 20);
    printf("nohang: %d\n", waitpid(p, &status, WNOHANG));
    siginfo_t info;
    memset(&info, 0, sizeof info);
    printf("waitid: %d", waitid(P_PID, (id_t)p, &info, WEXITED | WNOWAIT));
    printf(" code %d status %d same %d\n", info.si_code, info.si_status, info.si_pid == p);
    struct rusage usage;
    w = wait4(p, &status, 0, &usage);
    printf("still there: %d\n", w == p);

    volatile int shared = 0;
    p = vfork();
    if (p == 0) {
        shared = 5;
        _exit(3);
    }
    waitpid(p, &status, 0);
    printf("vfork shares memory: %d %d\n", shared, WEXITSTATUS(status));
    p = fork();
    if (p == 0) {
        x = 2;
        _exit(x);
    }
    waitpid(p, &status, 0);
    printf("fork does not: %d %d\n", x, WEXITSTATUS(status));
    int *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    p = fork();
    if (p == 0) {
        *map = 99;
        _exit(0);
    }
    waitpid(p, &status, 0);
    printf("shared mapping does: %d\n", *map);

    char *args[] = {argv[0], "a b", "", "c", NULL};
    char *env[] = {"X=1", "Y=", NULL};
    dup2(1, 9);
    fcntl(9, F_SETFD, FD_CLOEXEC);
    pid_t spawned;
    int error = posix_spawn(&spawned, argv[0], NULL, NULL, args, env);
    waitpid(spawned, &status, 0);
    printf("spawn: %d\n", error);
    printf("spawned: %d\n", WEXITSTATUS(status));
    printf("spawn of nothing: %s\n", strerror(posix_spawn(&spawned, "/nonexistent", NULL, NULL, args, env)));
    p = fork();
    if (p == 0) {
        pthread_t t;
        pthread_create(&t, NULL, exec_thread, argv[0]);
        for (;;) pause();
    }
    waitpid(p, &status, 0);
    printf("exec from a thread: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);

    signal(SIGCHLD, on_child);
    p = child_exits(0, 0);
    while (children == 0) pause_ms(1);
    waitpid(p, &status, 0);
    printf("SIGCHLD: %d\n", children);
    signal(SIGCHLD, SIG_IGN);
    p = child_exits(0, 0);
    w = waitpid(p, &status, 0);
    printf("ignored child: %d %s\n", w, strerror(errno));
    signal(SIGCHLD, SIG_DFL);

    p = fork();
    if (p == 0) {
        for (;;) pause();
    }
    kill(p, SIGSTOP);
    w = waitpid(p, &status, WUNTRACED);
    printf("stopped: %d %d\n", WIFSTOPPED(status), WSTOPSIG(status) == SIGSTOP);
    kill(p, SIGCONT);
    w = waitpid(p, &status, WCONTINUED);
    printf("continued: %d\n", WIFCONTINUED(status));
    kill(p, SIGTERM);
    waitpid(p, &status, 0);
    printf("ended: %d\n", WTERMSIG(status));

    p = fork();
    if (p == 0) {
        setpgid(0, 0);
        if (fork() == 0) for (;;) pause();
        for (;;) pause();
    }
    setpgid(p, p);
    pause_ms(20);
    printf("group: %d\n", getpgid(p) == p);
    kill(-p, SIGINT);
    waitpid(p, &status, 0);
    printf("group killed: %d\n", WTERMSIG(status));

    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    int pipes[2];
    if (pipe(pipes) != 0) return 1;
    pid_t middle = fork();
    if (middle == 0) {
        if (fork() == 0) {
            pause_ms(30);
            int adopted = getppid() != middle;
            if (write(pipes[1], &adopted, sizeof adopted) < 0) _exit(1);
            _exit(44);
        }
        _exit(0);
    }
    waitpid(middle, &status, 0);
    w = wait(&status);
    printf("orphan adopted: %d\n", WEXITSTATUS(status));
    p = fork();
    if (p == 0) {
        pid_t s = setsid();
        _exit(s == getpid() && getsid(0) == s && getpgrp() == s ? 0 : 1);
    }
    waitpid(p, &status, 0);
    printf("setsid: %d\n", WEXITSTATUS(status));
    p = fork();
    if (p == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(0);
    }
    waitpid(p, &status, 0);
    int pidfd = -1;
    p = (pid_t)syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
    if (p == 0) {
        pause_ms(5);
        _exit(21);
    }
    memset(&info, 0, sizeof info);
    printf("pidfd: %d", waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED));
    printf(" status %d\n", info.si_status);
    execl("/nonexistent/x", "x", (char *)NULL);
    printf("exec: %s\n", strerror(errno));
    execl("/etc/passwd", "x", (char *)NULL);
    printf("exec: %s\n", strerror(errno));
    return 0;
}
