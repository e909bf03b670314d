/* The answer is returned, or kept in a local first. */
struct dev { atomic_t refs; struct list_head list; };

bool dev_put(struct dev *d)
{
	atomic_dec(&d->refs); //~ misused-atomics
	return atomic_read(&d->refs) == 0; //~ misused-atomics
}

long dev_open(struct dev *d)
{
	atomic_inc(&d->refs); //~ misused-atomics
	return 0;
}

static const struct file_operations ops = { .open = dev_open, .release = dev_put };
