/* The same through a pointer. */
struct config {
	int size;
	int mode;
};

struct owner {
	struct config __rcu *config;
};

int owner_set(struct owner *o, int size, int mode)
{
	struct config *c = kmalloc(sizeof(*c), GFP_KERNEL);

	c->size = size;
	rcu_assign_pointer(o->config, c);
	c->mode = mode; //~ publish-before-initialise
	return 0;
}

static int owner_get(struct owner *o)
{
	struct config *c;
	int mode;

	rcu_read_lock();
	c = rcu_dereference(o->config);
	mode = c->mode;
	rcu_read_unlock();
	return mode;
}

static const struct owner_ops owner_ops = {
	.get = owner_get,
};
