struct conf { int mode; struct list_head list; };
struct port { struct conf *conf; struct list_head all; };

int port_mode(struct port *p)
{
	struct conf *c;

	rcu_read_lock();
	c = rcu_dereference(p->conf);
	rcu_read_unlock(); //~ rcu-use-after-unlock
	return c->mode; //~ rcu-use-after-unlock
}

int port_find(struct port *p)
{
	struct conf *c;
	int mode = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(c, &p->all, list) {
		rcu_read_unlock(); //~ rcu-use-after-unlock
		mode = c->mode; //~ rcu-use-after-unlock
		return mode;
	}
	rcu_read_unlock();
	return mode;
}
