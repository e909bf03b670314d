// The callee comes back only after the thread was asked to stop, or tells by its result.
#include <linux/kthread.h>

struct mill {
	struct task_struct *grinder;
	struct task_struct *sifter;
	int broken;
};

static void mill_park(struct mill *m)
{
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ);
}

static int grinder_thread(void *data)
{
	struct mill *m = data;

	while (!m->broken)
		mill_grind(m);
	mill_park(m);
	return 0;
}

static bool mill_is_over(struct mill *m)
{
	return kthread_should_stop();
}

static int sifter_thread(void *data)
{
	struct mill *m = data;

	while (!mill_is_over(m))
		mill_sift(m);
	kthread_exit(0);
}

int mill_start(struct mill *m)
{
	m->grinder = kthread_run(grinder_thread, m, "grinder");
	m->sifter = kthread_run(sifter_thread, m, "sifter");
	return 0;
}

void mill_stop(struct mill *m)
{
	kthread_stop(m->grinder);
	kthread_stop(m->sifter);
}
