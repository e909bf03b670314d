/* classic/reader_writer, fixed.
 * Wrong: the first reader counts itself, leaves the guard and waits for the writer; the second
 * reader sees that it is not the first and reads while the writer is in the middle.
 * Fix: the first reader keeps the guard while it waits for the writer.
 * Origin: classic: first-reader lock that is not waited for by the second reader */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static sem_t write_lock;
static int readers;
static volatile int left, right;

static void *writer(void *arg)
{
    sem_wait(&write_lock);
    left++;
    right++;
    sem_post(&write_lock);
    return arg;
}

static void *reader(void *arg)
{
    int first;
    int l, r;

    pthread_mutex_lock(&guard);
    first = ++readers == 1;
    if (first)
        sem_wait(&write_lock);
    pthread_mutex_unlock(&guard);

    l = left;
    r = right;

    pthread_mutex_lock(&guard);
    if (--readers == 0)
        sem_post(&write_lock);
    pthread_mutex_unlock(&guard);
    assert(l == r);
    return arg;
}

int main(void)
{
    pthread_t w, r[2];

    sem_init(&write_lock, 0, 1);
    pthread_create(&w, NULL, writer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&r[i], NULL, reader, NULL);
    pthread_join(w, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(r[i], NULL);
    return 0;
}
