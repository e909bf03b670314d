#include <pthread.h>
#include <stdlib.h>

static char fallback[16];
static char *buffer;

static void *give_up(void *unused)
{
    buffer = fallback;
    return unused;
}

int main(void)
{
    pthread_t thread;
    buffer = malloc(16);
    pthread_create(&thread, NULL, give_up, NULL);
    if (buffer != fallback)
        free(buffer); /* it may be the fallback by now */
    pthread_join(thread, NULL);
    return 0;
}
