/* SQLite: a connection's mutex and the shared cache's mutex, in both orders. Deadlock; one side allocates while it
   holds its lock, so the region holds a lock and an allocation. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t connection = PTHREAD_MUTEX_INITIALIZER, cache = PTHREAD_MUTEX_INITIALIZER;
static int pages, statements, stepping, cached;
static volatile int slow;

/* Forces the order of the failure. */
static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void *checkpoint(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&cache);
    __atomic_store_n(&cached, 1, __ATOMIC_RELEASE);
    wait_for(&stepping);
    usleep(2000);
    pages++;
    pthread_mutex_lock(&connection);
    pages++;
    pthread_mutex_unlock(&connection);
    pthread_mutex_unlock(&cache);
    return NULL;
}

static void step(void)
{
    pthread_mutex_lock(&connection);
    char *row = malloc(64);
    if (row == NULL)
        abort();
    for (int i = 0; i < 1000; i++)
        (void)slow;
    pthread_mutex_lock(&cache); /* SITE */
    row[0] = 1;
    statements += row[0];
    pthread_mutex_unlock(&cache);
    pthread_mutex_unlock(&connection);
    free(row);
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, checkpoint, NULL);
    wait_for(&cached);
    __atomic_store_n(&stepping, 1, __ATOMIC_RELEASE);
    step();
    pthread_join(thread, NULL);
    printf("pages %d statements %d\n", pages, statements);
    return 0;
}
