// Asked again after the state is set.
#include <linux/kthread.h>

struct cleaner {
	struct task_struct *task;
	struct list_head works;
	spinlock_t lock;
};

static int cleaner_thread(void *data)
{
	struct cleaner *c = data;

	for (;;) {
		if (kthread_should_stop())
			break;
		spin_lock(&c->lock);
		if (list_empty(&c->works)) {
			set_current_state(TASK_INTERRUPTIBLE);
			spin_unlock(&c->lock);
			if (kthread_should_stop()) {
				set_current_state(TASK_RUNNING);
				break;
			}
			schedule();
			continue;
		}
		spin_unlock(&c->lock);
		clean_one(c);
	}
	return 0;
}

void cleaner_stop(struct cleaner *c)
{
	kthread_stop(c->task);
}
