// The flag is set by the answer only; the jump waits to be stopped.
#include <linux/kthread.h>

struct pump {
	struct task_struct *flagged;
	struct task_struct *jumping;
	struct task_struct *asked;
};

static int flag_thread(void *data)
{
	bool run = true;

	while (run) {
		if (kthread_should_stop())
			run = false;
		else
			pump_step(data);
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
	return 0;
out:
	while (!kthread_should_stop())
		schedule_timeout_interruptible(10);
	return 0;
}

static int asked_thread(void *data)
{
	int stop = 0;

	for (; !stop; stop = kthread_should_stop())
		pump_step(data);
	return 0;
}

int pump_start(struct pump *p)
{
	p->flagged = kthread_run(flag_thread, p, "flag");
	p->jumping = kthread_run(jump_thread, p, "jump");
	p->asked = kthread_run(asked_thread, p, "asked");
	return 0;
}

void pump_stop(struct pump *p)
{
	kthread_stop(p->flagged);
	kthread_stop(p->jumping);
	kthread_stop(p->asked);
}
