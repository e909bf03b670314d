/* Three calls are made under the lock of the device, the fourth is not. */
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
	dev_apply(dev); //~ odd-unlocked-call
}
