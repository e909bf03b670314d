/* ski/fillattr, fixed.
 * Wrong: the attributes of an inode are copied without the lock that the writer holds; nothing
 * fails here, the race itself is the finding.
 * Fix: the copy is locked.
 * Origin: Linux 3.13.5 VFS generic_fillattr(), data race (SKI Table 6.5, bug 11), as a user-
 * mode model */
#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    volatile long size, blocks;
} inode = {.lock = PTHREAD_MUTEX_INITIALIZER};
static volatile long stat_size, stat_blocks;

static void *truncate_inode(void *arg)
{
    pthread_mutex_lock(&inode.lock);
    inode.size = 4096;
    inode.blocks = 8;
    pthread_mutex_unlock(&inode.lock);
    return arg;
}

static void *generic_fillattr(void *arg)
{
    pthread_mutex_lock(&inode.lock);
    stat_size = inode.size;
    stat_blocks = inode.blocks;
    pthread_mutex_unlock(&inode.lock);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, truncate_inode, NULL);
    pthread_create(&t2, NULL, generic_fillattr, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
