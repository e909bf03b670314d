/* One of two items is ended where the object goes; the other is ended only by a function of another way. */
struct group { struct delayed_work average; struct timer_list poll; struct mutex lock; int load; };

static void group_average(struct work_struct *work)
{
	struct group *g = container_of(work, struct group, average.work);

	g->load /= 2;
	schedule_delayed_work(&g->average, HZ);
}

static void group_poll(struct timer_list *t)
{
	struct group *g = from_timer(g, t, poll);

	g->load++;
}

struct group *group_new(void)
{
	struct group *g = kzalloc(sizeof(*g), GFP_KERNEL);

	if (!g)
		return NULL;
	INIT_DELAYED_WORK(&g->average, group_average);
	timer_setup(&g->poll, group_poll, 0);
	return g;
}

void group_wake(struct group *g)
{
	mod_timer(&g->poll, jiffies + HZ); //~ armed-at-free
}

void group_last_watcher_left(struct group *g)
{
	mutex_lock(&g->lock);
	del_timer(&g->poll);
	mutex_unlock(&g->lock);
}

void group_free(struct group *g)
{
	cancel_delayed_work_sync(&g->average);
	kfree(g);
} //~ armed-at-free
