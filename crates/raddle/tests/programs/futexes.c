// The futex call itself.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint32_t a, b;
static long done, woken_bits;
static long futex(uint32_t *p, int op, uint32_t v, void *t, uint32_t *q, uint32_t v3) {
    return syscall(SYS_futex, p, op, v, t, q, v3);
}
static void *wait_a(void *bits) {
    long r = futex(&a, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (uint32_t)(uintptr_t)bits);
    __atomic_or_fetch(&woken_bits, (long)bits, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&done, r == 0, __ATOMIC_SEQ_CST);
    return NULL;
}
static void ignore(int n) { (void)n; }
static void settle(void) {
    struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
}
static void start(pthread_t *t, int n, uint32_t bits) {
    for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, wait_a, (void *)(uintptr_t)(bits ? bits : 1u << i));
    settle();
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_t t[8];
    struct timespec soon = {0, 1000000};
    printf("other value: %ld %s\n", futex(&a, FUTEX_WAIT, 5, NULL, NULL, 0), strerror(errno));
    printf("timeout: %ld %s\n", futex(&a, FUTEX_WAIT, 0, &soon, NULL, 0), strerror(errno));
    struct timespec past = {1, 0};
    printf("absolute: %ld %s\n", futex(&a, FUTEX_WAIT_BITSET, 0, &past, NULL, ~0u), strerror(errno));
    printf("no bits: %ld %s\n", futex(&a, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), strerror(errno));
    printf("unaligned: %ld %s\n", futex((uint32_t *)((char *)&a + 1), FUTEX_WAIT, 0, NULL, NULL, 0), strerror(errno));
    printf("bad address: %ld %s\n", futex((uint32_t *)16, FUTEX_WAIT, 0, NULL, NULL, 0), strerror(errno));
    printf("nobody: %ld\n", futex(&a, FUTEX_WAKE, 1, NULL, NULL, 0));
    start(t, 4, ~0u);
    printf("wake one: %ld\n", futex(&a, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
    printf("wake all: %ld\n", futex(&a, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0));
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    printf("done: %ld\n", done);
    done = woken_bits = 0;
    start(t, 4, 0);
    printf("wake by bits: %ld\n", futex(&a, FUTEX_WAKE_BITSET_PRIVATE, 100, NULL, NULL, 6));
    pthread_join(t[1], NULL);
    pthread_join(t[2], NULL);
    printf("bits: %ld\n", woken_bits);
    printf("requeue: %ld\n", futex(&a, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)10, &b, 0));
    printf("requeue, other value: %ld %s\n", futex(&a, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)10, &b, 9), strerror(errno));
    printf("left on a: %ld on b: ", futex(&a, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0));
    printf("%ld\n", futex(&b, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0));
    pthread_join(t[0], NULL);
    pthread_join(t[3], NULL);
    done = 0;
    signal(SIGUSR1, ignore);
    start(t, 1, ~0u);
    futex(&a, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    pthread_kill(t[0], SIGUSR1);
    pthread_join(t[0], NULL);
    printf("woken, then signalled: %ld\n", done);
    start(t, 3, ~0u);
    b = 5;
    printf("wake op: %ld b %u\n", futex(&b, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &a, FUTEX_OP(FUTEX_OP_ADD, 2, FUTEX_OP_CMP_EQ, 0)), a);
    printf("wake op, not met: %ld a %u\n", futex(&b, FUTEX_WAKE_OP_PRIVATE, 1, (void *)5, &a, FUTEX_OP(FUTEX_OP_OR, 1, FUTEX_OP_CMP_EQ, 0)), a);
    printf("rest: %ld\n", futex(&a, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0));
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    return 0;
}
