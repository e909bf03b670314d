// Tested and followed in one condition; and tested before the lock that guards the use.
#include <linux/spinlock.h>

struct ops {
	int (*sync)(void);
};

struct dev {
	spinlock_t lock;
	struct ops *ops;
	struct map *map;
};

static int dev_has_sync(struct dev *d)
{
	if (d->ops && d->ops->sync) //~ double-fetch
		return 1;
	return 0;
}

static int dev_flush(struct dev *d)
{
	if (d->map) { //~ double-fetch
		spin_lock(&d->lock);
		map_sync(d->map);
		spin_unlock(&d->lock);
	}
	return 0;
}

static int dev_unbind(struct dev *d)
{
	spin_lock(&d->lock);
	d->ops = NULL;
	d->map = NULL;
	spin_unlock(&d->lock);
	return 0;
}

static const struct file_operations dev_fops = {
	.open = dev_has_sync,
	.flush = dev_flush,
	.release = dev_unbind,
};
