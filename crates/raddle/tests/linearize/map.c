/* A map with one lock. Buggy: "put if absent" looks and inserts in two critical sections. */
#include <pthread.h>

#include "raddle.h"

#define SLOTS 8

static struct {
    pthread_mutex_t lock;
    long keys[SLOTS], values[SLOTS];
    int used;
} map = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int find(long key)
{
    for (int i = 0; i < map.used; i++)
        if (map.keys[i] == key)
            return i;
    return -1;
}

/* The value that is in the map afterwards. */
static long put_if_absent(long key, long value)
{
    pthread_mutex_lock(&map.lock);
    int at = find(key);
#ifdef BUGGY
    pthread_mutex_unlock(&map.lock);
    if (at < 0)
        pthread_mutex_lock(&map.lock);
#endif
    if (at >= 0) {
#ifdef BUGGY
        pthread_mutex_lock(&map.lock);
#endif
        value = map.values[at];
    } else {
        map.keys[map.used] = key;
        map.values[map.used++] = value;
    }
    pthread_mutex_unlock(&map.lock);
    return value;
}

static long size(void)
{
    pthread_mutex_lock(&map.lock);
    long size = map.used;
    pthread_mutex_unlock(&map.lock);
    return size;
}

static void *client(void *value)
{
    raddle_begin("put_if_absent");
    raddle_argument(1);
    raddle_argument((long)value);
    raddle_result(put_if_absent(1, (long)value));
    raddle_end_operation();
    return 0;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, 0, client, (void *)10);
    pthread_create(&two, 0, client, (void *)20);
    pthread_join(one, 0);
    pthread_join(two, 0);
    raddle_probe("size");
    raddle_result(size());
    raddle_end_operation();
    return 0;
}
