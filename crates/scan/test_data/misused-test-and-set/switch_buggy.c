/* A switch instead of an if. */
struct dev { struct mutex lock; int used; int count; atomic_t refs; struct list_head list; };

long dev_open(struct dev *d)
{
	switch (d->used) { //~ misused-test-and-set
	case 0:
		mutex_lock(&d->lock); //~ misused-test-and-set
		d->used = 1; //~ misused-test-and-set
		mutex_unlock(&d->lock);
		break;
	default:
		return -1;
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
