struct conn { struct mutex lock; int closed; int seq; };

/* The branch forgets to return. */
void receive(struct conn *c)
{
	mutex_lock(&c->lock);
	if (c->closed) {
		mutex_unlock(&c->lock); //~ double-unlock
		drop(c);
	}
	c->seq++;
	mutex_unlock(&c->lock); //~ double-unlock
}
