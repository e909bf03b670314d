/* Two threads count up with one instruction each, which is not locked: an update can be lost. */
#include <pthread.h>

static int counter;

static void *count(void *arg)
{
    counter++;
    return arg;
}

int main(void)
{
    pthread_t a, b;

    pthread_create(&a, NULL, count, NULL);
    pthread_create(&b, NULL, count, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return counter == 2 ? 0 : 1;
}
