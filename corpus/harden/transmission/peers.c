/* Transmission in another spelling: the session is asked by way of its list of peers, and the assertion is two calls below
   the read that came too early, behind code that adds up what the peers want. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAGIC 43143
#define PEERS 4

struct bandwidth { int magic, limit; };
struct session { struct bandwidth *bandwidth; int wanted[PEERS]; };
static struct session session = {NULL, {10, 20, 30, 40}};

static int wanted_by_all(const struct session *from)
{
    int sum = 0;
    for (int i = 0; i < PEERS; i++)
        sum += from->wanted[i];
    return sum;
}

__attribute__((noinline)) static int clamp(const struct bandwidth *bandwidth, int wanted)
{
    assert(bandwidth != NULL && bandwidth->magic == MAGIC); /* SITE */
    return wanted < bandwidth->limit ? wanted : bandwidth->limit;
}

__attribute__((noinline)) static int share(const struct bandwidth *bandwidth, const struct session *from)
{
    return clamp(bandwidth, wanted_by_all(from) * 2);
}

__attribute__((noinline)) static int allocate(struct session *from)
{
    return share(__atomic_load_n(&from->bandwidth, __ATOMIC_ACQUIRE), from);
}

static void *init(void *unused)
{
    (void)unused;
    struct bandwidth *bandwidth = malloc(sizeof *bandwidth);
    if (bandwidth == NULL)
        abort();
    bandwidth->magic = MAGIC;
    bandwidth->limit = 100;
    usleep(20000);
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
