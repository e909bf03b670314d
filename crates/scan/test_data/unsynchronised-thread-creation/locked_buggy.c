// The lock keeps the two accesses apart but does not order them: the thread may get it first.
#include <linux/kthread.h>

struct link {
	struct mutex lock;
	int state;
	struct task_struct *rx;
};

static int rx_thread(void *data)
{
	struct link *l = data;

	while (!kthread_should_stop()) {
		mutex_lock(&l->lock);
		if (l->state != 1) {
			mutex_unlock(&l->lock);
			return -EPIPE;
		}
		mutex_unlock(&l->lock);
		receive_one(l);
	}
	return 0;
}

int link_up(struct link *l)
{
	l->rx = kthread_run(rx_thread, l, "rx");
	mutex_lock(&l->lock);
	l->state = 1; //~ unsynchronised-thread-creation
	mutex_unlock(&l->lock);
	return 0;
}
