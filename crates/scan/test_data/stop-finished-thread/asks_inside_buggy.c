// An endless loop that asks inside, and has a second way out.
#include <linux/kthread.h>

struct port {
	struct task_struct *task;
	int broken;
};

static int port_thread(void *data)
{
	struct port *p = data;

	for (;;) {
		wait_for_work(p);
		if (kthread_should_stop())
			break;
		if (p->broken) {
			port_off(p);
			break;
		}
		serve(p);
	}
	return 0;
}

int port_start(struct port *p)
{
	struct task_struct *task;

	task = kthread_run(port_thread, p, "port"); //~ stop-finished-thread
	if (IS_ERR(task))
		return PTR_ERR(task);
	p->task = task;
	return 0;
}

void port_stop(struct port *p)
{
	kthread_stop(p->task);
}
