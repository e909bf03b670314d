#include <pthread.h>
#include <stdlib.h>
struct config { int size; };
static struct config *config;
static void *reader(void *a) {
    if (config)
        return (void *)(long)config->size;
    return a;
}
static void *closer(void *a) {
    struct config *old = config;
    config = 0;
    free(old);
    return a;
}
int main(void) {
    pthread_t a, b;
    config = malloc(sizeof *config);
    config->size = 3;
    pthread_create(&a, 0, reader, 0);
    pthread_create(&b, 0, closer, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
