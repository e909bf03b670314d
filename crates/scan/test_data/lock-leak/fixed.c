/* All ways release; a function that returns holding on purpose; interruptible; guards; a wrapper. */
struct table {
	struct mutex lock;
	int count;
};

static void table_unlock(struct table *t)
{
	mutex_unlock(&t->lock);
}

int table_add(struct table *t, int value)
{
	int error = 0;

	if (mutex_lock_interruptible(&t->lock))
		return -ERESTARTSYS;
	if (t->count > 100) {
		error = -ENOSPC;
		goto out;
	}
	t->count++;
out:
	table_unlock(t);
	return error;
}

int table_begin(struct table *t)
{
	mutex_lock(&t->lock);
	if (t->count < 0) {
		mutex_unlock(&t->lock);
		return -EINVAL;
	}
	return 0;
}

int table_clear(struct table *t)
{
	guard(mutex)(&t->lock);
	if (t->count < 0)
		return -EINVAL;
	t->count = 0;
	return 0;
}

int table_get(struct table *t)
{
	int ret;

	ret = mutex_lock_killable(&t->lock);
	if (ret)
		return -EINTR;
	ret = t->count;
	mutex_unlock(&t->lock);
	return ret;
}
