#include <pthread.h>
#include <stdlib.h>

static char *cache;

static void *drop(void *unused)
{
    if (cache) {
        free(cache); /* both may come here before one of them clears it */
        cache = NULL;
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    cache = malloc(100);
    pthread_create(&thread, NULL, drop, NULL);
    drop(NULL);
    pthread_join(thread, NULL);
    return 0;
}
