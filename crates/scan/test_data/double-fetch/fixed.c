/* Read once; or under the lock. */
struct link {
	struct peer *peer;
	spinlock_t lock;
};

struct peer {
	int state;
};

static int link_show(struct seq_file *m, void *v)
{
	struct link *l = m->private;
	struct peer *peer = READ_ONCE(l->peer);

	if (peer)
		consume(peer->state);
	spin_lock(&l->lock);
	if (l->peer)
		consume(l->peer->state);
	spin_unlock(&l->lock);
	return 0;
}

static void link_down(struct work_struct *work)
{
	struct link *l = container_of(work, struct link, work);

	spin_lock(&l->lock);
	l->peer = NULL;
	spin_unlock(&l->lock);
}

static const struct link_ops link_ops = {
	.show = link_show,
	.down = link_down,
};
