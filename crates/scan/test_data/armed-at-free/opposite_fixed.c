// Ended where it was set up.
#include <linux/timer.h>
#include <linux/workqueue.h>

struct meter {
	struct delayed_work poll;
	void *buffer;
	int level;
};

static void meter_poll(struct work_struct *work)
{
	struct meter *m = container_of(work, struct meter, poll.work);

	m->level++;
	schedule_delayed_work(&m->poll, 10);
}

int meter_stats_init(struct meter *m)
{
	INIT_DELAYED_WORK(&m->poll, meter_poll);
	schedule_delayed_work(&m->poll, 10);
	return 0;
}

void meter_stats_deinit(struct meter *m)
{
	cancel_delayed_work_sync(&m->poll);
	kfree(m->buffer);
}
