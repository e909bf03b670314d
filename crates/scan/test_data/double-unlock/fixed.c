struct conn { struct mutex lock; int closed; int seq; };

void receive(struct conn *c)
{
	mutex_lock(&c->lock);
	if (c->closed) {
		mutex_unlock(&c->lock);
		drop(c);
		mutex_lock(&c->lock);
	}
	c->seq++;
	mutex_unlock(&c->lock);
}
