/* One thread copies two fields with memcpy while another one changes them. */
#include <assert.h>
#include <pthread.h>
#include <string.h>

static char fields[64];
static char copy[64];
static volatile size_t size = sizeof fields;

static void *writer(void *arg)
{
    ((volatile char *)fields)[0] = 1;
    ((volatile char *)fields)[63] = 1;
    return arg;
}

static void *copier(void *arg)
{
    memcpy(copy, fields, size);
    return arg;
}

int main(void)
{
    pthread_t t[2];

    pthread_create(&t[0], NULL, copier, NULL);
    pthread_create(&t[1], NULL, writer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert(copy[0] == copy[63]);
    return 0;
}
