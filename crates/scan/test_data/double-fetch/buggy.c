/* The pointer is cleared by another thread between the test and the use. */
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

	if (l->peer) //~ double-fetch
		consume(l->peer->state);
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
