// The callee comes back only after the thread was asked to stop, or tells by its result.
#include <linux/kthread.h>

struct mill {
	struct task_struct *grinder;
	struct task_struct *sifter;
	struct task_struct *cleaner;
	struct task_struct *counter;
	wait_queue_head_t queue;
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

static int cleaner_thread(void *data)
{
	struct mill *m = data;

	while (!m->broken)
		mill_clean(m);
	wait_event_interruptible(m->queue, kthread_should_stop());
	return 0;
}

static int counter_thread(void *data)
{
	struct mill *m = data;
	int sack;

	while (!kthread_should_stop()) {
		for (sack = 0; sack < 8; sack++)
			mill_count(m, sack);
	}
	return 0;
}

int mill_start(struct mill *m)
{
	m->grinder = kthread_run(grinder_thread, m, "grinder");
	m->sifter = kthread_run(sifter_thread, m, "sifter");
	m->cleaner = kthread_run(cleaner_thread, m, "cleaner");
	m->counter = kthread_run(counter_thread, m, "counter");
	return 0;
}

void mill_stop(struct mill *m)
{
	kthread_stop(m->cleaner);
	kthread_stop(m->counter);
	kthread_stop(m->grinder);
	kthread_stop(m->sifter);
}
