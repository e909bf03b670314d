/* ski/inotify_umount, buggy.
 * Wrong: the watch's inode is looked up, then used; the unmount takes the inode's file system
 * away in between.
 * Origin: Linux 3.2, unmount of a FAT32 volume against the removal of an inotify watch (SKI
 * Table 6.8, bug B), as a user-mode model */
#include <pthread.h>
#include <stddef.h>

struct super_block {
    volatile int active;
};

struct inode {
    struct super_block *volatile sb;
    volatile int watches;
};

static struct super_block fat = {.active = 1};
static struct inode inode = {.sb = &fat, .watches = 1};
static struct inode *watched = &inode;
static pthread_mutex_t inode_lock = PTHREAD_MUTEX_INITIALIZER;

static void *rm_watch(void *arg)
{
    struct inode *found;

    pthread_mutex_lock(&inode_lock);
    found = watched;
    pthread_mutex_unlock(&inode_lock);
    if (found != NULL) {
        pthread_mutex_lock(&inode_lock);
        if (found->sb->active)
            found->watches = 0;
        pthread_mutex_unlock(&inode_lock);
    }
    return arg;
}

static void *umount(void *arg)
{
    pthread_mutex_lock(&inode_lock);
    watched = NULL;
    inode.sb = NULL;
    pthread_mutex_unlock(&inode_lock);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, rm_watch, NULL);
    pthread_create(&t2, NULL, umount, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
