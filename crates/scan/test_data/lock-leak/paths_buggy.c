struct port { struct mutex m; struct srcu_struct readers; int state; int users; };

int prepare(struct port *p);

/* The lock is in a local, the variable is called rc, and the way out is a goto. */
int start(struct port *p)
{
	struct mutex *guard = &p->m;
	int rc;

	mutex_lock(guard); //~ lock-leak
	rc = prepare(p);
	if (rc)
		goto out;
	p->state = 1;
	mutex_unlock(guard);
out:
	return rc; //~ lock-leak
}

/* The result says whether the lock was got; the second exit forgets it. */
int change(struct port *p, int state)
{
	int retval = mutex_lock_interruptible(&p->m); //~ lock-leak

	if (retval)
		return retval;
	if (p->users > 8)
		return -EBUSY; //~ lock-leak
	p->state = state;
	mutex_unlock(&p->m);
	return 0;
}

/* A wrapper that may fail. */
static int port_get(struct port *p)
{
	if (!mutex_trylock(&p->m))
		return -EAGAIN;
	return 0;
}

int poll_port(struct port *p)
{
	int ret = port_get(p); //~ lock-leak

	if (ret < 0)
		return ret;
	if (!p->users)
		return -ENODEV; //~ lock-leak
	mutex_unlock(&p->m);
	return 0;
}

int sum(struct port *p)
{
	int idx = srcu_read_lock(&p->readers); //~ lock-leak

	if (p->users < 0)
		return -EINVAL; //~ lock-leak
	srcu_read_unlock(&p->readers, idx);
	return p->users;
}
