// Shared memory, semaphores and message queues of System V, and timers of execution time.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char *what, long result) {
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "ok");
}
#define TELL(call) tell(#call, (long)(call))

static void finish(void) {
    fflush(stdout);
    _exit(0);
}

static void shared_memory(void) {
    key_t key = 0x5eed0001;
    int id = shmget(key, 10000, IPC_CREAT | IPC_EXCL | 0600);
    tell("shmget", id);
    TELL(shmget(key, 10000, IPC_CREAT | IPC_EXCL | 0600));
    TELL(shmget(key, 20000, 0600));
    TELL(shmget(key + 1, 1, 0));
    TELL(shmget(IPC_PRIVATE, 0, 0600));
    printf("same %d\n", shmget(key, 0, 0) == id);
    int *memory = shmat(id, NULL, 0);
    memory[5] = 1;
    struct shmid_ds status;
    fflush(stdout);
    if (fork() == 0) {
        memory[5]++;
        int *again = shmat(id, NULL, SHM_RDONLY);
        shmctl(id, IPC_STAT, &status);
        printf("child sees %d, attached %d, size %d, mode %o\n", again[5], (int)status.shm_nattch,
               (int)status.shm_segsz, status.shm_perm.mode);
        TELL(shmdt(again));
        TELL(shmdt(again));
        TELL(shmdt((char *)memory + 4096));
        finish();
    }
    wait(NULL);
    fflush(stdout);
    if (fork() == 0) {
        if (setgid(1234) || setuid(1234)) _exit(1);
        TELL(shmget(key, 0, 0400));
        TELL(shmat(id, NULL, 0));
        TELL(shmctl(id, IPC_STAT, &status));
        TELL(shmctl(id, IPC_RMID, NULL));
        finish();
    }
    wait(NULL);
    TELL(shmctl(id, IPC_RMID, NULL));
    TELL(shmget(key, 0, 0));
    shmctl(id, IPC_STAT, &status);
    printf("removed: %d, attached %d, still %d\n", !!(status.shm_perm.mode & 01000), (int)status.shm_nattch, memory[5]);
    TELL(shmdt(memory));
    TELL(shmctl(id, IPC_STAT, &status));
}

static int change(int id, int which, int by, int flags) {
    struct sembuf operation = {which, by, flags};
    return semop(id, &operation, 1);
}

static void semaphores(void) {
    int id = semget(IPC_PRIVATE, 2, 0600);
    tell("semget", id);
    unsigned short values[2] = {1, 0};
    TELL(semctl(id, 0, SETALL, values));
    TELL(semctl(id, 2, GETVAL));
    TELL(semctl(id, 0, SETVAL, 40000));
    TELL(change(id, 0, -2, IPC_NOWAIT));
    TELL(change(id, 7, 1, 0));
    struct sembuf both[2] = {{0, -1, 0}, {1, -1, IPC_NOWAIT}};
    TELL(semop(id, both, 2));
    printf("untouched %d\n", semctl(id, 0, GETVAL));
    fflush(stdout);
    if (fork() == 0) {
        // Taken back at the end of the process.
        change(id, 0, -1, SEM_UNDO);
        change(id, 1, 3, 0);
        finish();
    }
    change(id, 1, -3, 0);
    wait(NULL);
    printf("undone %d, last by a child %d\n", semctl(id, 0, GETVAL), semctl(id, 0, GETPID) != getpid());
    fflush(stdout);
    pid_t waiter = fork();
    if (waiter == 0) {
        int result = change(id, 1, -1, 0);
        printf("woken: %s\n", result < 0 ? strerrorname_np(errno) : "ok");
        finish();
    }
    while (semctl(id, 1, GETNCNT) != 1) usleep(1000);
    struct timespec soon = {0, 1000000};
    struct sembuf more = {1, -2, 0};
    TELL(semtimedop(id, &more, 1, &soon));
    fflush(stdout);
    change(id, 1, 1, 0);
    wait(NULL);
    waiter = fork();
    if (waiter == 0) {
        int result = change(id, 1, -1, 0);
        printf("removed: %s\n", result < 0 ? strerrorname_np(errno) : "ok");
        finish();
    }
    while (semctl(id, 1, GETNCNT) != 1) usleep(1000);
    semctl(id, 0, IPC_RMID);
    wait(NULL);
}

struct message {
    long kind;
    char text[100];
};

static void messages(void) {
    int id = msgget(IPC_PRIVATE, 0600);
    tell("msgget", id);
    struct message out = {2, "two"}, in;
    TELL(msgsnd(id, &out, 4, 0));
    out = (struct message){1, "one"};
    TELL(msgsnd(id, &out, 4, 0));
    out = (struct message){3, "three"};
    TELL(msgsnd(id, &out, 6, 0));
    out.kind = 0;
    TELL(msgsnd(id, &out, 6, 0));
    TELL(msgrcv(id, &in, 100, 9, IPC_NOWAIT));
    TELL(msgrcv(id, &in, 2, 3, 0));
    long got = msgrcv(id, &in, 2, 3, MSG_NOERROR);
    printf("cut %ld %.2s\n", got, in.text);
    got = msgrcv(id, &in, 100, -2, 0);
    printf("lowest %ld %ld %s\n", got, in.kind, in.text);
    struct msqid_ds status;
    msgctl(id, IPC_STAT, &status);
    printf("left %d, %d bytes\n", (int)status.msg_qnum, (int)status.msg_cbytes);
    fflush(stdout);
    if (fork() == 0) {
        got = msgrcv(id, &in, 100, 7, 0);
        printf("child got %ld %s\n", got, in.text);
        finish();
    }
    out = (struct message){7, "seven"};
    msgsnd(id, &out, 6, 0);
    wait(NULL);
    int sent = 0;
    out.kind = 8;
    while (msgsnd(id, &out, 100, IPC_NOWAIT) == 0) sent++;
    printf("%d fit: %s\n", sent, strerrorname_np(errno));
    TELL(msgctl(id, IPC_RMID, NULL));
    TELL(msgrcv(id, &in, 100, 0, 0));
}

static volatile int profiled, virtual_alarms;

static void on_signal(int number) {
    if (number == SIGPROF) profiled++;
    if (number == SIGVTALRM) virtual_alarms++;
}

static void timers(void) {
    signal(SIGPROF, on_signal);
    signal(SIGVTALRM, on_signal);
    struct itimerval often = {{0, 1000}, {0, 1000}}, once = {{0, 0}, {0, 2000}}, old;
    TELL(setitimer(ITIMER_PROF, &often, NULL));
    TELL(setitimer(ITIMER_VIRTUAL, &once, NULL));
    for (volatile long i = 0; profiled < 5 || !virtual_alarms; i++) {}
    TELL(getitimer(ITIMER_PROF, &old));
    printf("still on %d\n", old.it_value.tv_usec > 0 && old.it_interval.tv_usec > 0);
    struct itimerval off = {{0, 0}, {0, 0}};
    TELL(setitimer(ITIMER_PROF, &off, NULL));
    TELL(getitimer(ITIMER_VIRTUAL, &old));
    printf("virtual came %d, left %ld\n", virtual_alarms, (long)old.it_value.tv_usec);
    TELL(setitimer(7, &off, NULL));
}

int main(void) {
    shared_memory();
    semaphores();
    messages();
    timers();
    return 0;
}
