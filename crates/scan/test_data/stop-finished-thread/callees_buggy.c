// A callee that only waits may ask as well: it comes back before the answer. The other thread ends itself.
#include <linux/kthread.h>

struct mill {
	struct task_struct *grinder;
	struct task_struct *sifter;
	struct completion done;
	atomic_t quit;
	int broken;
};

static bool mill_has_work(struct mill *m)
{
	return m->broken || kthread_should_stop();
}

static void mill_wait(struct mill *m)
{
	if (mill_has_work(m))
		return;
	while (!mill_has_work(m))
		schedule_timeout_interruptible(HZ);
}

static int grinder_thread(void *data)
{
	struct mill *m = data;

	for (;;) {
		mill_wait(m);
		if (kthread_should_stop())
			break;
		if (unlikely(m->broken))
			break;
		mill_grind(m);
	}
	return 0;
}

static int sifter_thread(void *data)
{
	struct mill *m = data;

	do {
		mill_sift(m);
	} while (!atomic_read(&m->quit));
	kthread_complete_and_exit(&m->done, 0);
}

int mill_start(struct mill *m)
{
	m->grinder = kthread_run(grinder_thread, m, "grinder"); //~ stop-finished-thread
	m->sifter = kthread_run(sifter_thread, m, "sifter"); //~ stop-finished-thread
	return 0;
}

void mill_stop(struct mill *m)
{
	atomic_inc(&m->quit);
	kthread_stop(m->grinder);
	kthread_stop(m->sifter);
}
