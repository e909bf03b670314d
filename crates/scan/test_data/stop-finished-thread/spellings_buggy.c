// A flag of its own, a jump out of the loop, and a thread that only does one thing.
#include <linux/kthread.h>

struct pump {
	struct task_struct *flagged;
	struct task_struct *jumping;
	struct task_struct *once;
	int quit;
};

static int flag_thread(void *data)
{
	struct pump *p = data;
	bool run = true;

	while (run && !kthread_should_stop()) {
		if (p->quit)
			run = false;
		schedule_timeout_interruptible(10);
	}
	return 0;
}

static int jump_thread(void *data)
{
	struct pump *p = data;

	do {
		if (pump_step(p) < 0)
			goto out;
	} while (!kthread_should_stop());
out:
	return 0;
}

static int once_thread(void *data)
{
	pump_calibrate(data);
	return 0;
}

int pump_start(struct pump *p)
{
	struct task_struct *task;

	p->flagged = kthread_run(flag_thread, p, "flag"); //~ stop-finished-thread
	p->once = kthread_run(once_thread, p, "once"); //~ stop-finished-thread
	task = kthread_create(jump_thread, p, "jump"); //~ stop-finished-thread
	if (IS_ERR(task))
		return PTR_ERR(task);
	p->jumping = task;
	wake_up_process(task);
	return 0;
}

void pump_stop(struct pump *p)
{
	struct task_struct *task = p->flagged;

	kthread_stop(task);
	kthread_stop(p->jumping);
	kthread_stop(p->once);
}
