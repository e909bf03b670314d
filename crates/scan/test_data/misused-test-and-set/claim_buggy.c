// Two threads that open the device at once both find it free.
#include <linux/fs.h>

struct channel {
	struct mutex lock;
	int busy;
	unsigned long flags;
};

static int channel_open(struct inode *inode, struct file *file)
{
	struct channel *c = file->private_data;

	if (c->busy) //~ misused-test-and-set
		return -EBUSY;
	c->busy = 1;
	return 0;
}

static int channel_release(struct inode *inode, struct file *file)
{
	struct channel *c = file->private_data;

	c->busy = 0;
	return 0;
}

static const struct file_operations channel_fops = {
	.open = channel_open,
	.release = channel_release,
};
