/* zsnes/video_mutex, fixed.
 * Wrong: the video thread is released before the mutex that it needs exists.
 * Fix: the mutex is made first.
 * Origin: ZSNES, mutex used before it is made (ConAir Table 5.2: order violation, assertion) */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t storage, *volatile video_mutex;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static int running, frames;

static void *video_thread(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!running)
        pthread_cond_wait(&released, &lock);
    pthread_mutex_unlock(&lock);

    assert(video_mutex != NULL);
    pthread_mutex_lock(video_mutex);
    frames++;
    pthread_mutex_unlock(video_mutex);
    return arg;
}

static void make_mutex(void)
{
    pthread_mutex_init(&storage, NULL);
    video_mutex = &storage;
}

int main(void)
{
    pthread_t t;

    pthread_create(&t, NULL, video_thread, NULL);
    make_mutex();
    pthread_mutex_lock(&lock);
    running = 1;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&released);
    pthread_join(t, NULL);
    return frames == 1 ? 0 : 1;
}
