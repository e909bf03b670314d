/* All callers hold the lock. */
struct dev {
	struct mutex lock;
	int mode;
	int state;
};

void dev_set(struct dev *dev, int mode)
{
	mutex_lock(&dev->lock);
	dev->mode = mode;
	mutex_unlock(&dev->lock);
}

int dev_swap(struct dev *dev, int mode)
{
	int old;

	mutex_lock(&dev->lock);
	old = dev->mode;
	dev->mode = mode;
	mutex_unlock(&dev->lock);
	return old;
}

static void dev_apply(struct dev *dev)
{
	dev->mode++;
}

void dev_open(struct dev *dev)
{
	mutex_lock(&dev->lock);
	dev_apply(dev);
	mutex_unlock(&dev->lock);
}

void dev_close(struct dev *dev)
{
	mutex_lock(&dev->lock);
	dev_apply(dev);
	mutex_unlock(&dev->lock);
}

void dev_kick(struct dev *dev)
{
	mutex_lock(&dev->lock);
	dev_apply(dev);
	mutex_unlock(&dev->lock);
}
