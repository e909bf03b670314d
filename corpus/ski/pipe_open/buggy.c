/* ski/pipe_open, buggy.
 * Wrong: open uses the pipe of the inode without the inode's lock; the last close has freed it
 * between the test and the use.
 * Origin: Linux 2.6.28 anonymous pipes, crash on concurrent open and close (SKI Table 6.8, bug
 * A), as a user-mode model */
#include <pthread.h>
#include <stdlib.h>

struct pipe {
    volatile int readers, writers;
};

static struct {
    pthread_mutex_t mutex;
    struct pipe *volatile pipe;
} inode = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *pipe_rdwr_open(void *arg)
{
    if (inode.pipe != NULL) {
        pthread_mutex_lock(&inode.mutex);
        inode.pipe->readers++;
        pthread_mutex_unlock(&inode.mutex);
    }
    return arg;
}

static void *pipe_release(void *arg)
{
    pthread_mutex_lock(&inode.mutex);
    if (--inode.pipe->readers == 0 && inode.pipe->writers == 0) {
        struct pipe *gone = inode.pipe;
        inode.pipe = NULL;
        free(gone);
    }
    pthread_mutex_unlock(&inode.mutex);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    inode.pipe = calloc(1, sizeof *inode.pipe);
    inode.pipe->readers = 1;
    pthread_create(&t1, NULL, pipe_rdwr_open, NULL);
    pthread_create(&t2, NULL, pipe_release, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
