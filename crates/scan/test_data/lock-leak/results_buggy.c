struct job { struct list_head list; int id; };
struct farm { struct mutex jobs_lock; spinlock_t rate_lock; rwlock_t map_lock; struct list_head jobs; int rate, state, tries; };

int reset(struct farm *f);

/* Found with the lock held, not found without it; nobody who gets the object gives the lock back. */
struct job *farm_find(struct farm *f, int id)
{
	struct job *job;

	mutex_lock(&f->jobs_lock); //~ lock-leak
	list_for_each_entry(job, &f->jobs, list) {
		if (job->id == id)
			return job; //~ lock-leak
	}
	mutex_unlock(&f->jobs_lock);
	return NULL;
}

int farm_has(struct farm *f, int id)
{
	return farm_find(f, id) != NULL;
}

/* The result tells, but no caller asks it for the lock. */
static bool farm_stop(struct farm *f)
{
	read_lock_bh(&f->map_lock); //~ lock-leak
	if (f->state)
		return false; //~ lock-leak
	read_unlock_bh(&f->map_lock);
	reset(f);
	return true;
}

int farm_down(struct farm *f)
{
	if (!farm_stop(f))
		return -EBUSY;
	return 0;
}

/* No way releases what is taken here. */
int farm_set_rate(struct farm *f, int rate)
{
	unsigned long flags;

	if (rate < 0)
		return -EINVAL;
	spin_lock_irqsave(&f->rate_lock, flags); //~ lock-leak
	f->rate = rate;
	return 0; //~ lock-leak
}

/* Taken a second time after an error, and not released then. */
int farm_restart(struct farm *f)
{
	int rc;

	mutex_lock(&f->jobs_lock);
	f->state = 1;
	mutex_unlock(&f->jobs_lock);
	rc = reset(f);
	if (rc) {
		mutex_lock(&f->jobs_lock); //~ lock-leak
		f->state = 0;
		return rc; //~ lock-leak
	}
	return 0;
}

/* A label whose name is also that of an attribute. */
int farm_retry(struct farm *f)
{
	int err = -EAGAIN;

	mutex_lock(&f->jobs_lock); //~ lock-leak
	if (f->tries > 3)
		goto __error;
	if (f->state < 0)
		return -EIO; //~ lock-leak
	err = 0;
__error:
	mutex_unlock(&f->jobs_lock);
	return err;
}
