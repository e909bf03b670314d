/* Two threads wait at one futex word, one after the other, and one is woken. It must be the first that came; with -DFIXED
 * either is right. */
#define _GNU_SOURCE
#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int door, room;
static atomic_int first = -1;

static long futex(atomic_int *word, int what, long count, long others, atomic_int *to)
{
    return syscall(SYS_futex, word, what, count, others, to, 0);
}

static void *wait_here(void *arg)
{
    int me = (int)(intptr_t)arg, none = -1;

    futex(&door, FUTEX_WAIT_PRIVATE, 0, 0, NULL);
    atomic_compare_exchange_strong(&first, &none, me);
    return arg;
}

int main(void)
{
    pthread_t t[2];

    for (int i = 0; i < 2; i++) {
        pthread_create(&t[i], NULL, wait_here, (void *)(intptr_t)i);
        /* Into the room as soon as it waits at the door: so they come in order. */
        while (futex(&door, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1, &room) != 1)
            usleep(1000);
    }
    futex(&room, FUTEX_WAKE_PRIVATE, 1, 0, NULL);
    while (atomic_load(&first) < 0)
        usleep(1000);
#ifndef FIXED
    assert(atomic_load(&first) == 0);
#endif
    futex(&room, FUTEX_WAKE_PRIVATE, 1, 0, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
