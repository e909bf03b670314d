// Loops that only another thread can end, of several kinds: they cost nothing, and nobody misses anything.
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
static volatile int flag;
static atomic_int word, spin = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int under_lock, data;
static void *worker(void *a) {
    for (volatile int i = 0; i < 50000; i++)
        ;
    data = 42;
    flag = 1;
    pthread_mutex_lock(&lock);
    under_lock = 1;
    pthread_mutex_unlock(&lock);
    atomic_store(&word, 1);
    atomic_store(&spin, 0);
    return a;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    while (!flag)
        ;
    for (int seen = 0; !seen;) {
        pthread_mutex_lock(&lock);
        seen = under_lock;
        pthread_mutex_unlock(&lock);
    }
    while (!atomic_load(&word))
        sched_yield();
    while (atomic_exchange(&spin, 1))
        ;
    assert(data == 42);
    pthread_join(thread, 0);
    return 0;
}
