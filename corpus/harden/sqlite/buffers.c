/* SQLite in another spelling: between the two locks a statement is formatted into a private buffer, a row is allocated by
   a helper, the time is asked, and a counter that the first lock guards is written. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t connection = PTHREAD_MUTEX_INITIALIZER, cache = PTHREAD_MUTEX_INITIALIZER;
static int pages, statements;
static pthread_barrier_t start;

__attribute__((noinline)) static char *new_row(int number)
{
    char *row = malloc(64);
    if (row == NULL)
        abort();
    row[0] = (char)number;
    return row;
}

static void *checkpoint(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&cache);
    pages++;
    usleep(3000);
    pthread_mutex_lock(&connection);
    statements += 0;
    pthread_mutex_unlock(&connection);
    pages++;
    pthread_mutex_unlock(&cache);
    return NULL;
}

static size_t step(void)
{
    char text[64] = "";
    volatile int slow = 0;
    struct timespec now;
    pthread_barrier_wait(&start);
    pthread_mutex_lock(&connection);
    statements++;
    char *row = new_row(1);
    for (int i = 0; i < 100; i++)
        slow += i;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof text, "statement %d", statements);
    usleep(3000);
    pthread_mutex_lock(&cache); /* SITE */
    pages += row[0] - 1;
    pthread_mutex_unlock(&cache);
    pthread_mutex_unlock(&connection);
    free(row);
    return slow == 4950 && now.tv_sec >= 0 ? strlen(text) : 0;
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&start, NULL, 2);
    pthread_create(&thread, NULL, checkpoint, NULL);
    size_t length = step();
    pthread_join(thread, NULL);
    pthread_mutex_lock(&cache);
    pthread_mutex_lock(&connection);
    int all_pages = pages, all_statements = statements;
    pthread_mutex_unlock(&connection);
    pthread_mutex_unlock(&cache);
    printf("pages %d statements %d\n", all_pages, all_statements);
    return length == strlen("statement 1") ? 0 : 1;
}
