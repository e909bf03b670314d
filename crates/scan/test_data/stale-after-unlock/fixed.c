/* A local keeps the value; or the lock is taken again. */
struct machine {
	spinlock_t lock;
	int state;
};

void machine_start(struct machine *m)
{
	int state;

	spin_lock(&m->lock);
	m->state = 1;
	state = m->state;
	spin_unlock(&m->lock);
	if (state == 1)
		announce(m);
}

void machine_restart(struct machine *m)
{
	spin_lock(&m->lock);
	m->state = 0;
	spin_unlock(&m->lock);
	spin_lock(&m->lock);
	if (m->state == 0)
		m->state = 1;
	spin_unlock(&m->lock);
}

void machine_stop(struct machine *m)
{
	spin_lock(&m->lock);
	m->state = 0;
	spin_unlock(&m->lock);
}
