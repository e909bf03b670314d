/* Both are ended where the object goes, one by a callee; of the pair below one is ended by the caller. */
struct group { struct delayed_work average; struct timer_list poll; struct mutex lock; int load; };
struct team { struct work_struct sort; struct timer_list poll; int load; };

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

static void team_sort(struct work_struct *work)
{
	struct team *m = container_of(work, struct team, sort);

	m->load = 0;
}

static void team_poll(struct timer_list *t)
{
	struct team *m = from_timer(m, t, poll);

	m->load++;
}

void group_setup(struct group *g, struct team *m)
{
	INIT_DELAYED_WORK(&g->average, group_average);
	timer_setup(&g->poll, group_poll, 0);
	INIT_WORK(&m->sort, team_sort);
	timer_setup(&m->poll, team_poll, 0);
}

void group_wake(struct group *g, struct team *m)
{
	mod_timer(&g->poll, jiffies + HZ);
	mod_timer(&m->poll, jiffies + HZ);
	schedule_work(&m->sort);
}

static void group_quiet(struct group *g)
{
	timer_shutdown_sync(&g->poll);
}

void group_free(struct group *g)
{
	group_quiet(g);
	cancel_delayed_work_sync(&g->average);
	kfree(g);
}

static void team_free(struct team *m)
{
	cancel_work_sync(&m->sort);
	kfree(m);
}

void team_leave(struct team *m)
{
	timer_shutdown_sync(&m->poll);
	team_free(m);
}
