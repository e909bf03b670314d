/* Written before; created and woken later; under a common lock; waiting for a completion. */
struct poller {
	struct mutex lock;
	struct completion ready;
	unsigned int interval;
	unsigned int limit;
	unsigned int flags;
	struct task_struct *task;
};

static int poll_thread(void *data)
{
	struct poller *p = data;

	while (!kthread_should_stop()) {
		msleep(p->interval);
		mutex_lock(&p->lock);
		if (p->limit)
			p->limit--;
		mutex_unlock(&p->lock);
	}
	return 0;
}

static int waiting_thread(void *data)
{
	struct poller *p = data;

	wait_for_completion(&p->ready);
	return p->flags;
}

int poller_start(struct poller *p)
{
	p->interval = 100;
	mutex_lock(&p->lock);
	p->task = kthread_run(poll_thread, p, "poller");
	p->limit = 10;
	mutex_unlock(&p->lock);
	return 0;
}

int poller_start_later(struct poller *p)
{
	struct task_struct *task = kthread_create(poll_thread, p, "poller");

	p->interval = 100;
	wake_up_process(task);
	return 0;
}

int waiter_start(struct poller *p)
{
	kthread_run(waiting_thread, p, "waiter");
	p->flags = 1;
	complete(&p->ready);
	return 0;
}
