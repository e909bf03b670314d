/* A path lies before a block that another thread frees: the kernel reads the path and nothing behind it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *path;
static char *next;

static void *look(void *arg)
{
    return access(path, F_OK) == 0 ? NULL : arg;
}

static void *owner(void *arg)
{
    next[0] = 'x';
    free(next);
    return arg;
}

int main(void)
{
    pthread_t t[2];

    path = strcpy(malloc(24), "/");
    next = malloc(24);
    pthread_create(&t[0], NULL, look, NULL);
    pthread_create(&t[1], NULL, owner, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    free(path);
    return 0;
}
