#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static void *eat(void *a) {
    for (int i = 0; i < 1000; i++)
        memset(malloc(1 << 20), 1, 1 << 20);
    return a;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, eat, 0);
    pthread_create(&b, 0, eat, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
