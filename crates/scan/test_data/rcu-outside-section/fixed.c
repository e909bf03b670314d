/* The pointer is followed in a section. */
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

	rcu_read_lock();
	conf = rcu_dereference(dev->conf);
	limit = conf->limit;
	rcu_read_unlock();
	return limit;
}

static const struct file_operations dev_fops = {
	.read = dev_limit,
};
