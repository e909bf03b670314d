/* HTTrack: a helper thread uses the global options before the main thread has published them. Order violation,
   segmentation fault two calls below the function that reads the pointer. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct options { int depth, retries; };
static struct options chosen = {9, 2};
static struct options *global_options;
static int crawled, started;

/* Forces the order of the failure. */
static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

__attribute__((noinline)) static int depth_of(struct options *options)
{
    return options->depth; /* SITE */
}

__attribute__((noinline)) static int limit_of(struct options *options)
{
    return depth_of(options) * 10;
}

static void *crawl(void *unused)
{
    (void)unused;
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    int limit = limit_of(global_options);
    crawled = limit;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, crawl, NULL);
    wait_for(&started);
    usleep(3000);
    global_options = &chosen;
    pthread_join(thread, NULL);
    printf("crawled %d\n", crawled);
    return 0;
}
