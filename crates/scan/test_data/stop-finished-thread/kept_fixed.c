// A reference keeps the task; and a thread that asks on every way may be stopped.
#include <linux/kthread.h>

struct port {
	struct task_struct *task;
	struct task_struct *other;
	int broken;
};

static int port_thread(void *data)
{
	struct port *p = data;

	for (;;) {
		wait_for_work(p);
		if (kthread_should_stop())
			break;
		if (p->broken)
			break;
		serve(p);
	}
	return 0;
}

static int other_thread(void *data)
{
	for (;;) {
		wait_for_work(data);
		if (kthread_should_stop())
			break;
	}
	return 0;
}

int port_start(struct port *p)
{
	struct task_struct *task;

	task = kthread_run(port_thread, p, "port");
	if (IS_ERR(task))
		return PTR_ERR(task);
	get_task_struct(task);
	p->task = task;
	return 0;
}

int other_start(struct port *p)
{
	p->other = kthread_run(other_thread, p, "other");
	return 0;
}

void port_stop(struct port *p)
{
	kthread_stop(p->task);
	put_task_struct(p->task);
	kthread_stop(p->other);
}
