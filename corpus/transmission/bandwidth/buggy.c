/* transmission/bandwidth, buggy.
 * Wrong: the session is handed to the event thread before S1 sets its bandwidth object; S2 may
 * read the field first.
 * Origin: Transmission-1.42, h->band read before it is initialised (ConMem Fig. 4.4; ConSeq
 * Trans; ConAir Table 5.2: order violation) */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define BAND_MAGIC 43143

struct band {
    int magic;
};

struct session {
    struct band *volatile band;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static struct session *queue;
static struct band band = {BAND_MAGIC};

static int is_band(const struct band *b)
{
    return b != NULL && b->magic == BAND_MAGIC;
}

static void *event_thread(void *arg)
{
    struct session *h;

    pthread_mutex_lock(&lock);
    while (queue == NULL)
        pthread_cond_wait(&posted, &lock);
    h = queue;
    pthread_mutex_unlock(&lock);
    assert(is_band(h->band)); /* S2 */
    return arg;
}

int main(void)
{
    struct session *h = calloc(1, sizeof *h);
    pthread_t t;

    pthread_create(&t, NULL, event_thread, NULL);
    pthread_mutex_lock(&lock);
    queue = h;
    pthread_mutex_unlock(&lock);
    h->band = &band; /* S1 */
    pthread_cond_signal(&posted);
    pthread_join(t, NULL);
    free(h);
    return 0;
}
