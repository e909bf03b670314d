/* apache/cache_refcount, buggy.
 * Wrong: the reference count is decremented atomically but read again for the test, so that
 * two threads can both see zero and both clean the object up.
 * Origin: Apache#1, crash in cache management (CTrigger Table 2; ConMem Apache-1: dangling
 * pointer) */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct body {
    volatile int length;
};

struct cache_object {
    atomic_int refcount;
    struct body *volatile body;
};

static struct cache_object object;

static void cleanup(struct cache_object *obj)
{
    struct body *body = obj->body;

    body->length = 0;
    obj->body = NULL;
    free(body);
}

static void *release(void *arg)
{
    struct cache_object *obj = arg;

    atomic_fetch_sub(&obj->refcount, 1);
    if (atomic_load(&obj->refcount) == 0)
        cleanup(obj);
    return NULL;
}

int main(void)
{
    pthread_t t1, t2;

    atomic_init(&object.refcount, 2);
    object.body = calloc(1, sizeof *object.body);
    pthread_create(&t1, NULL, release, &object);
    pthread_create(&t2, NULL, release, &object);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return object.body == NULL ? 0 : 1;
}
