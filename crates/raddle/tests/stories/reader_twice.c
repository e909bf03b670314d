// A reader takes its lock once more in a function, while a writer waits that new readers must not overtake.
#include <pthread.h>

static pthread_rwlock_t lock;
static int value;

static int twice_the_value(void) {
    pthread_rwlock_rdlock(&lock);
    int doubled = 2 * value;
    pthread_rwlock_unlock(&lock);
    return doubled;
}

static void *reader(void *unused) {
    pthread_rwlock_rdlock(&lock);
    int sum = value + twice_the_value();
    pthread_rwlock_unlock(&lock);
    return sum ? unused : NULL;
}

static void *writer(void *unused) {
    pthread_rwlock_wrlock(&lock);
    value++;
    pthread_rwlock_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock, &kind);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, writer, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
