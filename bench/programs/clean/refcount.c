/* The last of three owners frees the object. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct object {
    atomic_int owners;
    int value;
};
static void put(struct object *o)
{
    if (atomic_fetch_sub(&o->owners, 1) == 1)
        free(o);
}
static void *use(void *arg)
{
    struct object *o = arg;
    assert(o->value == 7);
    put(o);
    return NULL;
}
int main(void)
{
    pthread_t t[2];
    struct object *o = malloc(sizeof *o);
    atomic_init(&o->owners, 3);
    o->value = 7;
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, use, o);
    put(o);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
