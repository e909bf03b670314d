#include <pthread.h>
#include <stdlib.h>
static char *buffer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int used;
static void *append(void *a) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 3; i++)
        buffer[used++] = 1;
    pthread_mutex_unlock(&lock);
    return a;
}
int main(void) {
    pthread_t a, b;
    buffer = malloc(5);
    pthread_create(&a, 0, append, 0);
    pthread_create(&b, 0, append, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
