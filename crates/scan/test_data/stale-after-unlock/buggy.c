/* The new state is read again after the lock is gone. */
struct machine {
	spinlock_t lock;
	int state;
};

void machine_start(struct machine *m)
{
	spin_lock(&m->lock);
	m->state = 1;
	spin_unlock(&m->lock);
	if (m->state == 1) //~ stale-after-unlock
		announce(m);
}

void machine_stop(struct machine *m)
{
	spin_lock(&m->lock);
	m->state = 0;
	spin_unlock(&m->lock);
}

int machine_state(struct machine *m)
{
	int state;

	spin_lock(&m->lock);
	state = m->state;
	spin_unlock(&m->lock);
	return state;
}

int machine_busy(struct machine *m)
{
	int busy;

	spin_lock(&m->lock);
	busy = m->state != 0;
	spin_unlock(&m->lock);
	return busy;
}
