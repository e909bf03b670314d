// The decision who frees is made after the lock was given back.
#include <linux/mutex.h>

struct gadget {
	struct mutex mutex;
	int present;
	int opened;
};

static int gadget_open(struct gadget *g)
{
	mutex_lock(&g->mutex);
	if (g->opened) {
		mutex_unlock(&g->mutex);
		return -EBUSY;
	}
	g->opened++;
	mutex_unlock(&g->mutex);
	return 0;
}

static int gadget_close(struct gadget *g)
{
	mutex_lock(&g->mutex);
	--g->opened;
	if (!g->present) {
		mutex_unlock(&g->mutex);
		gadget_delete(g);
		return 0;
	}
	mutex_unlock(&g->mutex);
	return 0;
}

static void gadget_gone(struct gadget *g)
{
	mutex_lock(&g->mutex);
	g->present = 0;
	mutex_unlock(&g->mutex);
	if (g->opened) //~ stale-after-unlock
		gadget_wake(g);
	else
		gadget_delete(g);
}

static const struct file_operations gadget_fops = {
	.open = gadget_open,
	.release = gadget_close,
};
