/* What C programs order their accesses with; nothing here is a race. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <threads.h>
#include <time.h>

static mtx_t mutex;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static sem_t posted;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_mutex_t recursive;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static atomic_int is_stored;

static int ready, initialised, locked, in_table, spun, recursed, timed, flagged, sent, stored;

static void initialise(void)
{
    initialised = 7;
}

static void use_locks(void)
{
    struct timespec late;

    pthread_rwlock_wrlock(&table);
    in_table++;
    pthread_rwlock_unlock(&table);
    pthread_spin_lock(&spin);
    spun++;
    pthread_spin_unlock(&spin);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    recursed++;
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    clock_gettime(CLOCK_REALTIME, &late);
    late.tv_sec += 100;
    if (pthread_mutex_timedlock(&recursive, &late) == 0) {
        timed++;
        pthread_mutex_unlock(&recursive);
    }
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        thrd_yield();
    flagged++;
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static int worker(void *is_sender)
{
    call_once(&once, initialise);
    int sum = initialised;

    mtx_lock(&mutex);
    locked += sum;
    ready++;
    cnd_signal(&changed);
    mtx_unlock(&mutex);
    use_locks();
    pthread_rwlock_rdlock(&table);
    sum += in_table;
    pthread_rwlock_unlock(&table);
    pthread_barrier_wait(&barrier);
    if (is_sender) {
        sent = 1;
        sem_post(&posted);
        stored = 5;
        atomic_store_explicit(&is_stored, 1, memory_order_release);
    } else {
        sem_wait(&posted);
        sum += sent;
        while (!atomic_load_explicit(&is_stored, memory_order_acquire))
            thrd_yield();
        sum += stored;
    }
    return sum > 0;
}

int main(void)
{
    pthread_mutexattr_t kind;
    thrd_t threads[2];

    mtx_init(&mutex, mtx_plain);
    cnd_init(&changed);
    sem_init(&posted, 0, 0);
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    thrd_create(&threads[0], worker, NULL);
    thrd_create(&threads[1], worker, &mutex);
    mtx_lock(&mutex);
    while (ready < 2)
        cnd_wait(&changed, &mutex);
    int sum = locked;
    mtx_unlock(&mutex);
    for (int i = 0; i < 2; i++)
        thrd_join(threads[i], NULL);
    return sum + in_table + spun + recursed + timed + flagged == 24 ? 0 : 1;
}
