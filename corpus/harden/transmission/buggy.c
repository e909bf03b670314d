/* Transmission: a torrent asks for bandwidth before the session has allocated it; the assertion is in the callee that
   receives the pointer. Order violation, assertion, inter-procedural. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAGIC 43143

struct bandwidth { int magic, limit; };
struct session { struct bandwidth *bandwidth; };
static struct session session;

__attribute__((noinline)) static int is_bandwidth(struct bandwidth *bandwidth)
{
    assert(bandwidth != NULL && bandwidth->magic == MAGIC); /* SITE */
    return bandwidth->limit;
}

static int allocate(struct session *from)
{
    return is_bandwidth(__atomic_load_n(&from->bandwidth, __ATOMIC_ACQUIRE));
}

static void *init(void *unused)
{
    (void)unused;
    struct bandwidth *bandwidth = malloc(sizeof *bandwidth);
    bandwidth->magic = MAGIC;
    bandwidth->limit = 100;
    usleep(3000);
    __atomic_store_n(&session.bandwidth, bandwidth, __ATOMIC_RELEASE);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, init, NULL);
    int limit = allocate(&session);
    printf("limit %d\n", limit);
    pthread_join(thread, NULL);
    free(session.bandwidth);
    return 0;
}
