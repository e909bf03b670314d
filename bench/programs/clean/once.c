/* Three threads initialise by pthread_once. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int *table, made;
static void make(void)
{
    table = malloc(4 * sizeof *table);
    for (int i = 0; i < 4; i++)
        table[i] = i * i;
    made++;
}
static void *use(void *arg)
{
    pthread_once(&once, make);
    assert(table[3] == 9);
    return arg;
}
int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, use, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    assert(made == 1);
    free(table);
    return 0;
}
