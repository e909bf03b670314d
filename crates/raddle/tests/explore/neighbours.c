/* Each thread uses a name of its own. Functions that look for the end of a string read beyond it, into the next
 * name, but use nothing of that. */
#include <pthread.h>
#include <string.h>

static char names[2][8] = {"first", "second"};
static volatile size_t lengths[2];

static void *measure(void *arg)
{
    lengths[0] = strlen(names[0]) + (strchr(names[0], 't') != NULL);
    return arg;
}

static void *change(void *arg)
{
    ((volatile char *)names[1])[0] = 'S';
    lengths[1] = 1;
    return arg;
}

int main(void)
{
    pthread_t t[2];

    pthread_create(&t[0], NULL, measure, NULL);
    pthread_create(&t[1], NULL, change, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return lengths[0] == 6 && lengths[1] == 1 ? 0 : 1;
}
