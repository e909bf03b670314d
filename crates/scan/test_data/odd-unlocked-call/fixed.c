/* All calls are made under the lock; another function is called without it as often as not. */
struct dev {
	struct mutex lock;
	int mode;
};

static void dev_apply(struct dev *dev)
{
	dev->mode++;
}

void dev_open_one(struct dev *dev)
{
	mutex_lock(&dev->lock);
	dev_apply(dev);
	mutex_unlock(&dev->lock);
}

void dev_open_two(struct dev *dev)
{
	mutex_lock(&dev->lock);
	dev_apply(dev);
	mutex_unlock(&dev->lock);
}

void dev_open_three(struct dev *dev)
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

static int dev_mode(struct dev *dev)
{
	return dev->mode;
}

int dev_mode_one(struct dev *dev)
{
	return dev_mode(dev);
}

int dev_mode_two(struct dev *dev)
{
	int mode;

	mutex_lock(&dev->lock);
	mode = dev_mode(dev);
	mutex_unlock(&dev->lock);
	return mode;
}
