struct port { struct mutex m; spinlock_t *extra; int state; int users; };

int prepare(struct port *p);

/* Taken and released under the same condition. */
int maybe(struct port *p, int locked)
{
	int rc;

	if (!locked)
		mutex_lock(&p->m);
	rc = prepare(p);
	if (rc)
		goto out;
	p->state = 1;
out:
	if (!locked)
		mutex_unlock(&p->m);
	return rc;
}

/* A lock that may be missing. */
void optional(struct port *p)
{
	if (p->extra)
		spin_lock(p->extra);
	p->state++;
	if (p->extra)
		spin_unlock(p->extra);
}

/* Success keeps the lock, and the result says so. */
int port_lock_ready(struct port *p)
{
	mutex_lock(&p->m);
	if (!p->users) {
		mutex_unlock(&p->m);
		return -ENODEV;
	}
	return 0;
}

int poll_port(struct port *p)
{
	int ret = port_lock_ready(p);

	if (ret)
		return ret;
	p->state = 2;
	mutex_unlock(&p->m);
	return 0;
}

/* A trylock inside a condition, tried only if it is wanted. */
int try_both(struct port *p, int want)
{
	if (want && !mutex_trylock(&p->m))
		return -EAGAIN;
	p->state = 3;
	if (want)
		mutex_unlock(&p->m);
	return 0;
}

/* A callee releases. */
static void finish(struct port *p)
{
	p->state = 4;
	mutex_unlock(&p->m);
}

int done(struct port *p)
{
	mutex_lock(&p->m);
	if (p->users) {
		finish(p);
		return -EBUSY;
	}
	finish(p);
	return 0;
}

/* The lock ends with its scope. */
int scoped(struct port *p)
{
	guard(mutex)(&p->m);
	if (p->users)
		return -EBUSY;
	p->state = 5;
	return 0;
}
