/* The same with an early return in place of a nested block. */
struct cache {
	struct mutex lock;
	void *page;
	int uses;
};

static int drop_page(struct cache *c)
{
	if (!c->page) //~ misused-test-and-set
		return 0;
	mutex_lock(&c->lock);
	c->uses--;
	put_page(c->arena);
	mutex_unlock(&c->lock);
	return 1;
}

static int fill_page(struct cache *c, void *page)
{
	mutex_lock(&c->lock);
	c->page = page;
	mutex_unlock(&c->lock);
	return 0;
}

static const struct cache_operations cache_ops = {
	.drop = drop_page,
	.fill = fill_page,
};
