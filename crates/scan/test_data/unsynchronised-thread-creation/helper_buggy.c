/* The thread reads the field in a helper that it calls. */
struct poller {
	struct device *dev;
	unsigned int interval;
	struct task_struct *task;
};

static void poll_once(struct poller *p)
{
	msleep(p->interval); //~ unsynchronised-thread-creation
}

static int poll_thread(void *data)
{
	struct poller *p = data;

	while (!kthread_should_stop())
		poll_once(p);
	return 0;
}

int poller_start(struct poller *p)
{
	struct task_struct *task = kthread_run(poll_thread, p, "poller");

	if (IS_ERR(task))
		return PTR_ERR(task);
	p->interval = 100;
	return 0;
}
