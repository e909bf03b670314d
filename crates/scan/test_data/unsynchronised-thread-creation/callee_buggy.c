// The fields are set by a helper after the timer was started.
#include <linux/timer.h>

struct beat {
	struct task_struct *task;
	int period;
	int limit;
};

static int beat_thread(void *data)
{
	struct beat *b = data;

	while (!kthread_should_stop())
		msleep(b->period);
	return 0;
}

static void beat_set(struct beat *b, int period)
{
	b->period = period;
	b->limit = period * 2;
}

int beat_start(struct beat *b, int period)
{
	struct task_struct *task = kthread_run(beat_thread, b, "beat"); //~ unsynchronised-thread-creation

	if (IS_ERR(task))
		return PTR_ERR(task);
	beat_set(b, period);
	return 0;
}
