/* Double-checked initialisation with acquire and release. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(int *) instance;
static int *get(void)
{
    int *p = atomic_load_explicit(&instance, memory_order_acquire);
    if (!p) {
        pthread_mutex_lock(&lock);
        p = atomic_load_explicit(&instance, memory_order_relaxed);
        if (!p) {
            p = malloc(sizeof *p);
            *p = 42;
            atomic_store_explicit(&instance, p, memory_order_release);
        }
        pthread_mutex_unlock(&lock);
    }
    return p;
}
static void *use(void *arg)
{
    assert(*get() == 42);
    return arg;
}
int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, use, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    free(instance);
    return 0;
}
