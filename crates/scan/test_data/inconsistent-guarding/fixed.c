/* Fresh objects, helpers called with the lock held, and asserted locks need no lock of their own. */
struct stats {
	struct mutex lock;
	unsigned int window;
};

static void set_window(struct stats *s, unsigned int window)
{
	s->window = window;
}

static void set_window_asserted(struct stats *s, unsigned int window)
{
	lockdep_assert_held(&s->lock);
	s->window = window;
}

static ssize_t window_store(struct device *dev, const char *buf, size_t count)
{
	struct stats *s = dev_get_drvdata(dev);

	mutex_lock(&s->lock);
	set_window(s, count);
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

static struct stats *stats_new(void)
{
	struct stats *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	s->window = 1;
	return s;
}

static const struct stats_ops stats_ops = {
	.store = window_store,
	.show = window_show,
	.set = set_window_asserted,
	.new = stats_new,
};
