/* The same lock, released on every way. */
struct chip { int state; int mode; };

int chip_set(struct chip *c, int mode)
{
	chip_mutex_acquire(c);
	if (mode > 3) {
		chip_mutex_release(c);
		return -EINVAL;
	}
	c->mode = mode;
	chip_mutex_release(c);
	return 0;
}

/* Taking a reference is no lock. */
int chip_start(struct chip *c, int mode)
{
	chip_acquire(c);
	if (mode > 3)
		return -EINVAL;
	chip_release(c);
	return 0;
}
