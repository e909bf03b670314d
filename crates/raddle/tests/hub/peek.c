/* Reads a file in some interleavings only: the first run, in which no thread is interrupted, never touches it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int begun, both;
static const char *path;

static void *other(void *unused) {
    if (begun == 1)
        both = 1;
    begun = 2;
    return unused;
}

int main(int count, char **words) {
    pthread_t thread;
    char text[16] = "";
    path = count > 1 ? words[1] : "/etc/hostname";
    pthread_create(&thread, NULL, other, NULL);
    begun = 1;
    if (both || begun == 2) {
        FILE *file = fopen(path, "r");
        if (file && fgets(text, sizeof text, file) && text[0] == 's')
            abort();
    }
    pthread_join(thread, NULL);
    return 0;
}
