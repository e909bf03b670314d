/* A message is freed by one thread while another one hands it to the kernel. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *volatile message;
static int ends[2];

static void *sender(void *arg)
{
    return write(ends[1], message, 16) == 16 ? NULL : arg;
}

static void *owner(void *arg)
{
    free(message);
    return arg;
}

int main(void)
{
    pthread_t t[2];

    if (pipe(ends) != 0)
        return 2;
    message = calloc(1, 16);
    pthread_create(&t[0], NULL, sender, NULL);
    pthread_create(&t[1], NULL, owner, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
