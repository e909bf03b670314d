/* HTTrack in another spelling: the options hang on a structure that is published early, and the thread looks for the
   deepest of several limits in a loop of its own. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct options { int depth, retries; const char *agent; };
struct engine { struct options *options; int running; };
static struct options chosen = {9, 2, "crawler"};
static struct engine engine = {NULL, 1};
static int crawled, started;

static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static int limit_of(const struct engine *from)
{
    int limit = 0;
    for (int factor = 1; factor <= 10; factor++) {
        const struct options *options = from->options;
        size_t name = strlen(options->agent); /* SITE */
        int product = options->depth * factor + (int)name - 7;
        if (product > limit)
            limit = product;
    }
    return limit;
}

static void *crawl(void *unused)
{
    (void)unused;
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    crawled = limit_of(&engine);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, crawl, NULL);
    wait_for(&started);
    usleep(3000);
    __atomic_store_n(&engine.options, &chosen, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf("crawled %d\n", crawled);
    return 0;
}
