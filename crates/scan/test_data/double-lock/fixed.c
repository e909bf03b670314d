struct pool { spinlock_t lock; struct pool *parent; int free; };

static void pool_put(struct pool *p, int locked)
{
	if (!locked)
		spin_lock(&p->lock);
	p->free++;
	if (!locked)
		spin_unlock(&p->lock);
}

static void put(struct pool *p)
{
	spin_lock(&p->lock);
	p->free++;
	spin_unlock(&p->lock);
}

/* Another object of the same type, and a callee that is told. */
int pool_get(struct pool *p, int n)
{
	spin_lock(&p->lock);
	p->free -= n;
	if (p->free < 0) {
		pool_put(p, 1);
		put(p->parent);
		spin_unlock(&p->lock);
		return -ENOMEM;
	}
	spin_unlock(&p->lock);
	return 0;
}
