/* The pointer is followed without a section. */
struct conf {
	int limit;
};

struct dev {
	struct conf *conf;
};

int dev_limit(struct dev *dev)
{
	struct conf *conf;
	int limit;

	conf = rcu_dereference(dev->conf); //~ rcu-outside-section
	limit = conf->limit;
	return limit;
}

static const struct file_operations dev_fops = {
	.read = dev_limit,
};
