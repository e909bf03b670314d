struct pool { spinlock_t lock; int free; };

static void pool_put(struct pool *p)
{
	spin_lock(&p->lock);
	p->free++;
	spin_unlock(&p->lock);
}

/* The error path gives back under the lock that giving back takes. */
int pool_get(struct pool *p, int n)
{
	spin_lock(&p->lock); //~ double-lock
	p->free -= n;
	if (p->free < 0) {
		pool_put(p); //~ double-lock
		spin_unlock(&p->lock);
		return -ENOMEM;
	}
	spin_unlock(&p->lock);
	return 0;
}
