/* library/shared_line, fixed.
 * Right: each thread formats its line in a buffer of its own.
 * Origin: library: a buffer is changed between formatting and writing it */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE 24

static int ends[2];

static void *report(void *arg)
{
    char line[LINE];
    int length = snprintf(line, sizeof line, "worker %s is done\n", (const char *)arg);

    return write(ends[1], line, length) == length ? NULL : arg;
}

/* Whether everybody's line was written once. */
static int is_complete(const char *text)
{
    const char *first = strstr(text, "worker a");
    const char *second = strstr(text, "worker b");

    return first != NULL && second != NULL;
}

int main(void)
{
    static char text[3 * LINE];
    pthread_t t[2];

    if (pipe(ends) != 0)
        return 2;
    pthread_create(&t[0], NULL, report, "a");
    pthread_create(&t[1], NULL, report, "b");
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    close(ends[1]);
    for (ssize_t got = 1, all = 0; got > 0; all += got)
        got = read(ends[0], text + all, sizeof text - 1 - all);
    return is_complete(text) ? 0 : 1;
}
