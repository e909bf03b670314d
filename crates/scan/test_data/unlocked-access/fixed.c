/* Everybody holds the lock; a field that nobody guards is left alone. */
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

int dev_report(struct dev *dev)
{
	int mode;

	mutex_lock(&dev->lock);
	mode = dev->mode;
	mutex_unlock(&dev->lock);
	return mode;
}

static const struct file_operations dev_fops = {
	.open = dev_set,
	.read = dev_report,
	.write = dev_swap,
};

int dev_state(struct dev *dev)
{
	return dev->state;
}
