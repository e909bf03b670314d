// The pthread library: everything that ends in a futex.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cv = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t bar;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t sem;
static long counter, once_count, destroyed, serial;
static int turn;
static __thread int local = 7;

static void init(void) { once_count++; }
static void destroy(void *p) { __atomic_add_fetch(&destroyed, (long)p, __ATOMIC_SEQ_CST); }
static void *add(void *a) {
    pthread_once(&once, init);
    pthread_setspecific(key, (void *)1);
    local += (int)(long)a;
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&m);
        counter++;
        pthread_mutex_unlock(&m);
    }
    for (int i = 0; i < 500; i++) {
        pthread_spin_lock(&spin);
        counter++;
        pthread_spin_unlock(&spin);
    }
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_unlock(&rw);
    pthread_rwlock_wrlock(&rw);
    counter++;
    pthread_rwlock_unlock(&rw);
    if (pthread_barrier_wait(&bar) == PTHREAD_BARRIER_SERIAL_THREAD)
        __atomic_add_fetch(&serial, 1, __ATOMIC_SEQ_CST);
    return (void *)(long)local;
}
static void *ping(void *a) {
    int me = (int)(long)a;
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&m);
        while (turn != me) pthread_cond_wait(&cv, &m);
        turn = !me;
        pthread_cond_signal(&cv);
        pthread_mutex_unlock(&m);
    }
    return NULL;
}
static void *waiter(void *a) {
    (void)a;
    sem_wait(&sem);
    return NULL;
}
static void cleanup(void *a) { (*(int *)a)++; }
static void *cancelled(void *a) {
    pthread_cleanup_push(cleanup, a);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return NULL;
}
static void *dies_with_lock(void *a) {
    pthread_mutex_lock(a);
    return NULL;
}
static int c11(void *a) { return (int)(long)a * 2; }

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_t t[8];
    void *r;
    pthread_barrier_init(&bar, NULL, 8);
    pthread_spin_init(&spin, 0);
    pthread_key_create(&key, destroy);
    long sum = 0;
    for (long i = 0; i < 8; i++) pthread_create(&t[i], NULL, add, (void *)i);
    for (int i = 0; i < 8; i++) {
        pthread_join(t[i], &r);
        sum += (long)r;
    }
    printf("counter %ld once %ld tls %ld destroyed %ld serial %ld\n", counter, once_count, sum, destroyed, serial);
    pthread_create(&t[0], NULL, ping, (void *)0);
    pthread_create(&t[1], NULL, ping, (void *)1);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    printf("ping pong done, turn %d\n", turn);
    sem_init(&sem, 0, 0);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, waiter, NULL);
    for (int i = 0; i < 4; i++) sem_post(&sem);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 2000000;
    if (soon.tv_nsec >= 1000000000) soon.tv_sec++, soon.tv_nsec -= 1000000000;
    int e = sem_timedwait(&sem, &soon);
    printf("semaphore: %d %s\n", e, strerror(errno));
    pthread_mutex_lock(&m);
    printf("trylock: %s\n", strerror(pthread_mutex_trylock(&m)));
    printf("timedlock: %s\n", strerror(pthread_mutex_timedlock(&m, &soon)));
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 1;
    printf("timedwait: %s\n", strerror(pthread_cond_timedwait(&cv, &m, &soon)));
    pthread_mutex_unlock(&m);
    int cleaned = 0;
    pthread_create(&t[0], NULL, cancelled, &cleaned);
    struct timespec brief = {0, 5000000};
    nanosleep(&brief, NULL);
    pthread_cancel(t[0]);
    pthread_join(t[0], &r);
    printf("cancelled: %d cleaned %d\n", r == PTHREAD_CANCELED, cleaned);

    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_t *robust = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_init(robust, &attr);
    pthread_create(&t[0], NULL, dies_with_lock, robust);
    pthread_join(t[0], NULL);
    printf("robust: %s\n", strerror(pthread_mutex_lock(robust)));
    pthread_mutex_consistent(robust);
    pthread_mutex_unlock(robust);
    pid_t p = fork();
    if (p == 0) {
        pthread_mutex_lock(robust);
        nanosleep(&brief, NULL);
        kill(getpid(), SIGKILL);
    }
    struct timespec tiny = {0, 1000000};
    nanosleep(&tiny, NULL);
    printf("robust across processes: %s\n", strerror(pthread_mutex_lock(robust)));
    pthread_mutex_consistent(robust);
    pthread_mutex_unlock(robust);
    waitpid(p, NULL, 0);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED);
    pthread_mutex_t check;
    pthread_mutex_init(&check, &attr);
    pthread_mutex_lock(&check);
    printf("errorcheck: %s\n", strerror(pthread_mutex_lock(&check)));
    thrd_t c;
    int res;
    thrd_create(&c, c11, (void *)21);
    thrd_join(c, &res);
    printf("C11: %d\n", res);
    char name[16];
    pthread_setname_np(pthread_self(), "renamed");
    pthread_getname_np(pthread_self(), name, sizeof name);
    printf("name: %s\n", name);
    pthread_attr_t a;
    pthread_getattr_np(pthread_self(), &a);
    size_t size;
    pthread_attr_getstacksize(&a, &size);
    printf("stack: %s\n", size >= 1 << 20 ? "sensible" : "wrong");
    pthread_exit(NULL);
}
