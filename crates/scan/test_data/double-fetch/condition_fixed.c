// Fetched once, or tested under the lock.
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
	struct ops *ops = READ_ONCE(d->ops);

	if (ops && ops->sync)
		return 1;
	return 0;
}

static int dev_flush(struct dev *d)
{
	spin_lock(&d->lock);
	if (d->map)
		map_sync(d->map);
	spin_unlock(&d->lock);
	return 0;
}

static int dev_flush_again(struct dev *d)
{
	if (d->map) {
		spin_lock(&d->lock);
		if (d->map)
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
	.mmap = dev_flush_again,
	.release = dev_unbind,
};
