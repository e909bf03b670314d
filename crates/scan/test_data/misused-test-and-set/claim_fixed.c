// One operation tests and takes; or a lock is held.
#include <linux/fs.h>

struct channel {
	struct mutex lock;
	int busy;
	unsigned long flags;
};

static int channel_open(struct inode *inode, struct file *file)
{
	struct channel *c = file->private_data;

	if (test_and_set_bit(0, &c->flags))
		return -EBUSY;
	mutex_lock(&c->lock);
	if (c->busy) {
		mutex_unlock(&c->lock);
		return -EBUSY;
	}
	c->busy = 1;
	mutex_unlock(&c->lock);
	return 0;
}

static int channel_release(struct inode *inode, struct file *file)
{
	struct channel *c = file->private_data;

	mutex_lock(&c->lock);
	c->busy = 0;
	mutex_unlock(&c->lock);
	clear_bit(0, &c->flags);
	return 0;
}

static const struct file_operations channel_fops = {
	.open = channel_open,
	.release = channel_release,
};
