/* apache/cache_lookup, fixed.
 * Wrong: the object is found under the lock but its reference is taken after it; the remover
 * frees it in between. Every access to the table is locked.
 * Fix: the reference is taken in the same critical section as the lookup.
 * Origin: Apache-1, multi-variable atomicity violation that ends in a dangling pointer (ConMem
 * Table 4.3) */
#include <pthread.h>
#include <stdlib.h>

struct cache_object {
    int refcount;
    long header[3]; /* an allocator's own words in a freed object do not reach data */
    char *volatile data;
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cache_object *entry;
static char text[] = "cached";
static volatile int served;

static void put(struct cache_object *obj)
{
    int last;

    pthread_mutex_lock(&cache_lock);
    last = --obj->refcount == 0;
    pthread_mutex_unlock(&cache_lock);
    if (last) {
        obj->data = NULL; /* what the allocator's reuse would do */
        free(obj);
    }
}

static void *serve(void *arg)
{
    struct cache_object *obj;

    pthread_mutex_lock(&cache_lock);
    obj = entry;
    if (obj != NULL) {
        obj->refcount++;
        pthread_mutex_unlock(&cache_lock);
        served = obj->data[0];
        put(obj);
    }
    else
        pthread_mutex_unlock(&cache_lock);
    return arg;
}

static void *evict(void *arg)
{
    struct cache_object *obj;

    pthread_mutex_lock(&cache_lock);
    obj = entry;
    entry = NULL;
    pthread_mutex_unlock(&cache_lock);
    put(obj);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    entry = malloc(sizeof *entry);
    entry->refcount = 1;
    entry->data = text;
    pthread_create(&t1, NULL, serve, NULL);
    pthread_create(&t2, NULL, evict, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
