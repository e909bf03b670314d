/* Strings of all lengths beside freed blocks: the C library reads them in lines that reach into those. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t total;
static void *print(void *a) {
    char text[400];
    for (int length = 1; length < 400; length += 3) {
        memset(text, 'x', length);
        text[length] = 0;
        char *made;
        if (asprintf(&made, "%s: %d", text, length) < 0)
            abort();
        pthread_mutex_lock(&lock);
        total += strlen(made) + (strchr(made, ':') != NULL);
        pthread_mutex_unlock(&lock);
        free(made);
    }
    return a;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, print, 0);
    pthread_create(&two, 0, print, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return total == 0;
}
