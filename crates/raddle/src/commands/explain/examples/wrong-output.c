#include <pthread.h>
#include <stdio.h>

static void *greet(void *name)
{
    printf("%s\n", (const char *)name);
    return NULL;
}

int main(void)
{
    pthread_t first, second;
    pthread_create(&first, NULL, greet, "first");
    pthread_create(&second, NULL, greet, "second"); /* does not wait for the first */
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
