// Both operations are made by small functions; or the answer is chosen by a conditional expression.
#include <linux/atomic.h>

struct pool {
	atomic_t users;
	struct list_head free;
};

static inline void pool_leave(struct pool *p)
{
	atomic_dec(&p->users);
}

static inline int pool_users(struct pool *p)
{
	return atomic_read(&p->users);
}

static int pool_release(struct inode *inode, struct file *file)
{
	struct pool *p = file->private_data;

	pool_leave(p); //~ misused-atomics
	if (pool_users(p) == 0)
		kfree(p);
	return 0;
}

static int pool_open(struct inode *inode, struct file *file)
{
	struct pool *p = file->private_data;

	atomic_inc(&p->users); //~ misused-atomics
	return atomic_read(&p->users) > 1 ? -EBUSY : 0;
}

static const struct file_operations pool_fops = {
	.open = pool_open,
	.release = pool_release,
};
