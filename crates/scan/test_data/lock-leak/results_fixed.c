struct job { struct list_head list; int id; struct mutex own; };
struct sock { int state; };
struct line { struct sock sk; int up; };
struct inode { struct rw_semaphore i_rwsem; int size; };
struct farm { struct mutex jobs_lock; spinlock_t rate_lock; struct list_head jobs; int rate, state, tries; refcount_t users; };

int reset(struct farm *f);

/* Whoever gets the object releases the lock. */
struct job *farm_find(struct farm *f, int id)
{
	struct job *job;

	mutex_lock(&f->jobs_lock);
	list_for_each_entry(job, &f->jobs, list) {
		if (job->id == id)
			return job;
	}
	mutex_unlock(&f->jobs_lock);
	return NULL;
}

int farm_has(struct farm *f, int id)
{
	struct job *job = farm_find(f, id);

	if (!job)
		return 0;
	mutex_unlock(&f->jobs_lock);
	return 1;
}

/* What is found comes back with its own lock held, and is released by whoever asked. */
static struct job *job_take(struct farm *f, int id)
{
	struct job *job = farm_find(f, id);

	if (!job)
		return NULL;
	mutex_lock(&job->own);
	mutex_unlock(&f->jobs_lock);
	return job;
}

int job_rename(struct farm *f, int id)
{
	struct job *job = job_take(f, id);

	if (!job)
		return -ENOENT;
	if (id < 0) {
		mutex_unlock(&job->own);
		return -EINVAL;
	}
	job->id = id + 1;
	mutex_unlock(&job->own);
	return 0;
}

/* The lock is named once by its object and once by a part of it. */
int line_up(struct line *l)
{
	struct sock *sk = &l->sk;

	lock_sock(&l->sk);
	if (l->up) {
		release_sock(sk);
		return -EALREADY;
	}
	l->up = 1;
	release_sock(sk);
	return 0;
}

int inode_grow(struct inode *inode)
{
	int err = down_write_killable(&inode->i_rwsem);

	if (err)
		return err;
	inode->size++;
	inode_unlock(inode);
	return 0;
}

/* The caller holds the lock; it is given up and taken again. */
static int farm_pause(struct farm *f, int drop)
{
	int rc;

	if (drop)
		mutex_unlock(&f->jobs_lock);
	rc = reset(f);
	if (drop)
		mutex_lock(&f->jobs_lock);
	if (rc)
		return rc;
	f->state = 2;
	return 0;
}

int farm_wait(struct farm *f)
{
	int rc;

	mutex_lock(&f->jobs_lock);
	rc = farm_pause(f, f->tries);
	mutex_unlock(&f->jobs_lock);
	return rc;
}

/* The one who drops the last reference has the lock. */
void farm_put(struct farm *f)
{
	if (!refcount_dec_and_mutex_lock(&f->users, &f->jobs_lock))
		return;
	f->state = -1;
	mutex_unlock(&f->jobs_lock);
}

int farm_retry(struct farm *f)
{
	int err = -EAGAIN;

	spin_lock(&f->rate_lock);
	if (f->tries > 3)
		goto __error;
	err = 0;
__error:
	spin_unlock(&f->rate_lock);
	return err;
}
