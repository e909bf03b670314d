/* A lock that is known by the names of what takes and releases it only. */
struct chip { int state; int mode; };

int chip_set(struct chip *c, int mode)
{
	chip_mutex_acquire(c); //~ lock-leak
	if (mode > 3)
		return -EINVAL; //~ lock-leak
	c->mode = mode;
	chip_mutex_release(c);
	return 0;
}

int chip_start(struct chip *c)
{
	hw_take_lock(c);
	c->state = 1;
	hw_release_lock(c);
	return 0;
}
