// A counter changed by several readers at the same time.
#include <linux/rwsem.h>

struct table {
	struct rw_semaphore sem;
	int users;
};

static int table_open(struct table *t)
{
	down_read(&t->sem);
	t->users++; //~ inconsistent-guarding
	up_read(&t->sem);
	return 0;
}

static int table_close(struct table *t)
{
	down_write(&t->sem);
	t->users--;
	up_write(&t->sem);
	return 0;
}

static int table_reset(struct table *t)
{
	down_write(&t->sem);
	t->users = 0;
	if (t->users)
		table_clear(t);
	up_write(&t->sem);
	return 0;
}

static const struct file_operations table_fops = {
	.open = table_open,
	.release = table_close,
	.flush = table_reset,
};
