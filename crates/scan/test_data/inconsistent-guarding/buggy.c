/* Seven accesses under the lock, one write without. */
struct stats {
	struct mutex lock;
	unsigned int window;
};

static ssize_t window_store(struct device *dev, const char *buf, size_t count)
{
	struct stats *s = dev_get_drvdata(dev);

	mutex_lock(&s->lock);
	s->window = count;
	if (s->window > 10)
		s->window = 10;
	mutex_unlock(&s->lock);
	return count;
}

static ssize_t window_show(struct device *dev, char *buf)
{
	struct stats *s = dev_get_drvdata(dev);
	ssize_t n;

	mutex_lock(&s->lock);
	n = emit(buf, s->window, s->window * 2, s->window * 3);
	if (s->window)
		n++;
	mutex_unlock(&s->lock);
	return n;
}

static int stats_tick(struct inode *inode, struct file *file)
{
	struct stats *s = file->private_data;

	s->window = 1; //~ inconsistent-guarding
	return 0;
}

static const struct stats_ops stats_ops = {
	.store = window_store,
	.show = window_show,
	.tick = stats_tick,
};
