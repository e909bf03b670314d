/* pbzip2/fifo_lock, fixed.
 * Wrong: the main thread takes the last block being written as the end of the consumers and
 * deletes the queue's lock; a consumer comes back for one more look.
 * Fix: the consumer is joined before the queue is deleted.
 * Origin: PBZIP2-1, fifo->mut set to NULL while a consumer still needs it (CTrigger Table 2;
 * ConMem Table 4.3) */
#include <pthread.h>
#include <stdlib.h>

#define BLOCKS 3

struct queue {
    pthread_mutex_t *volatile mut;
    int blocks;
};

static struct queue fifo = {.blocks = BLOCKS};
static pthread_mutex_t out_mut = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t out_cond = PTHREAD_COND_INITIALIZER;
static int written;

static int take_block(void)
{
    int block = 0;

    pthread_mutex_lock(fifo.mut);
    if (fifo.blocks > 0)
        block = fifo.blocks--;
    pthread_mutex_unlock(fifo.mut);
    return block;
}

static void *consumer(void *arg)
{
    while (take_block()) {
        pthread_mutex_lock(&out_mut);
        written++;
        pthread_mutex_unlock(&out_mut);
    }
    pthread_cond_signal(&out_cond);
    return arg;
}

static void queue_delete(struct queue *q)
{
    pthread_mutex_t *mut = q->mut;

    q->mut = NULL;
    pthread_mutex_destroy(mut);
    free(mut);
}

int main(void)
{
    pthread_t t;

    fifo.mut = malloc(sizeof *fifo.mut);
    pthread_mutex_init(fifo.mut, NULL);
    pthread_create(&t, NULL, consumer, NULL);

    pthread_mutex_lock(&out_mut);
    while (written < BLOCKS)
        pthread_cond_wait(&out_cond, &out_mut);
    pthread_mutex_unlock(&out_mut);
    pthread_join(t, NULL);
    queue_delete(&fifo);
    return 0;
}
