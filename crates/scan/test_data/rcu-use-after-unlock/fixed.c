struct conf { int mode; refcount_t users; };
struct port { struct conf *conf; };

int port_mode(struct port *p)
{
	struct conf *c;
	int mode;

	rcu_read_lock();
	c = rcu_dereference(p->conf);
	mode = c->mode;
	rcu_read_unlock();
	return mode;
}

int port_keep(struct port *p)
{
	struct conf *c;

	rcu_read_lock();
	c = rcu_dereference(p->conf);
	if (!refcount_inc_not_zero(&c->users))
		c = NULL;
	rcu_read_unlock();
	return c ? c->mode : 0;
}
