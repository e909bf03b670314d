/* The tested value in a local. */
struct dev { struct mutex lock; int used; int count; atomic_t refs; struct list_head list; };

long dev_open(struct dev *d)
{
	int used = d->used;

	if (!used) { //~ misused-test-and-set
		mutex_lock(&d->lock); //~ misused-test-and-set
		d->used = 1; //~ misused-test-and-set
		mutex_unlock(&d->lock);
	}
	return 0;
}

long dev_write(struct dev *d)
{
	mutex_lock(&d->lock);
	d->used = 0; //~ misused-test-and-set
	mutex_unlock(&d->lock);
	return 0;
}

static const struct file_operations ops = { .open = dev_open, .write = dev_write };
