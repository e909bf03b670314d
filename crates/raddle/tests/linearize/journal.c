/* A counter whose changes are written to a file. BUGGY: the place in the file is looked up before the line is written,
 * so that one line hides another; nobody reads the file while the program runs. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raddle.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static int journal;

static void write_line(long number)
{
    char line[32];
    struct stat now;
    int length = snprintf(line, sizeof line, "add %ld\n", number);
    fstat(journal, &now);
    pwrite(journal, line, length, now.st_size);
}

static void add(long number)
{
    raddle_begin("add");
    raddle_argument(number);
    pthread_mutex_lock(&lock);
    sum += number;
#ifndef BUGGY
    write_line(number);
#endif
    pthread_mutex_unlock(&lock);
#ifdef BUGGY
    write_line(number);
#endif
    raddle_end_operation();
}

static void *client(void *number)
{
    add((long)number);
    return NULL;
}

int main(void)
{
    pthread_t one, other;
    journal = open("journal.log", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    pthread_create(&one, NULL, client, (void *)1);
    pthread_create(&other, NULL, client, (void *)20);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    raddle_probe("sum");
    raddle_result(sum);
    raddle_end_operation();
    return 0;
}
