/* library/route_copy, fixed.
 * Right: a lock is held while the names are replaced and while they are copied.
 * Origin: library: a structure is copied by a library function in the middle of its change */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

struct route {
    char gateway[64];
    char device[64];
};

static struct route route = {"10.0.0.1 via old", "device of the old route"};
static struct route seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Volatile, so that the compiler calls strcpy and memcpy instead of copying by itself. */
static const char *volatile new_gateway = "10.0.0.2 via new";
static const char *volatile new_device = "device of the new route";
static volatile size_t route_size = sizeof(struct route);

static void *update(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    strcpy(route.gateway, new_gateway);
    strcpy(route.device, new_device);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *look_up(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    memcpy(&seen, &route, route_size);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t t[2];

    pthread_create(&t[0], NULL, look_up, NULL);
    pthread_create(&t[1], NULL, update, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert((strstr(seen.gateway, "new") != NULL) == (strstr(seen.device, "new") != NULL));
    return 0;
}
