struct dev { spinlock_t lock; struct mutex big; struct timer_list poll; struct work_struct reset; int n; };

static void dev_poll(struct timer_list *t)
{
	struct dev *d = from_timer(d, t, poll);

	spin_lock(&d->lock);
	d->n++;
	spin_unlock(&d->lock);
}

static void dev_reset(struct work_struct *work)
{
	struct dev *d = container_of(work, struct dev, reset);

	if (!mutex_trylock(&d->big))
		return;
	d->n = 0;
	mutex_unlock(&d->big);
}

void dev_setup(struct dev *d)
{
	timer_setup(&d->poll, dev_poll, 0);
	INIT_WORK(&d->reset, dev_reset);
}

void dev_quiet(struct dev *d)
{
	spin_lock_bh(&d->lock);
	d->n = -1;
	spin_unlock_bh(&d->lock);
	del_timer_sync(&d->poll);
}

void dev_down(struct dev *d)
{
	mutex_lock(&d->big);
	cancel_work_sync(&d->reset);
	mutex_unlock(&d->big);
}
