/* Readers and a writer of a table under a read-write lock. */
#include <assert.h>
#include <pthread.h>
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int left, right;
static void *reader(void *arg)
{
    for (int i = 0; i < 3; i++) {
        pthread_rwlock_rdlock(&lock);
        assert(left == -right);
        pthread_rwlock_unlock(&lock);
    }
    return arg;
}
static void *writer(void *arg)
{
    for (int i = 0; i < 3; i++) {
        pthread_rwlock_wrlock(&lock);
        left++;
        right--;
        pthread_rwlock_unlock(&lock);
    }
    return arg;
}
int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, i ? reader : writer, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}
