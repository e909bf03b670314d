/* C11 threads, mutex and condition. */
#include <assert.h>
#include <threads.h>
static mtx_t lock;
static cnd_t changed;
static int stage;
static int second(void *arg)
{
    (void)arg;
    mtx_lock(&lock);
    while (stage != 1)
        cnd_wait(&changed, &lock);
    stage = 2;
    cnd_broadcast(&changed);
    mtx_unlock(&lock);
    return 5;
}
int main(void)
{
    thrd_t t;
    int result;
    mtx_init(&lock, mtx_plain);
    cnd_init(&changed);
    thrd_create(&t, second, NULL);
    mtx_lock(&lock);
    stage = 1;
    cnd_broadcast(&changed);
    while (stage != 2)
        cnd_wait(&changed, &lock);
    mtx_unlock(&lock);
    thrd_join(t, &result);
    assert(result == 5);
    return 0;
}
