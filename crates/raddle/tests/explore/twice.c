#include <pthread.h>
#include <stdlib.h>
static int *volatile shared;
static void *drop(void *a) {
    int *mine = shared;
    if (mine) {
        shared = 0;
        free(mine);
    }
    return a;
}
int main(void) {
    pthread_t a, b;
    shared = malloc(sizeof *shared);
    pthread_create(&a, 0, drop, 0);
    pthread_create(&b, 0, drop, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
