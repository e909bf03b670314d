struct lamp { struct mutex m; struct work_struct dim; struct timer_list blink; spinlock_t l; int n; };

/* Waits for whatever timer it is given. */
static void lamp_quiet_timer(struct lamp *lamp, struct timer_list *timer)
{
	if (del_timer_sync(timer))
		lamp->n--;
}

static inline bool lamp_end(struct work_struct *work)
{
	return cancel_work_sync(work);
}

static void lamp_blink(struct timer_list *t)
{
	struct lamp *lamp = from_timer(lamp, t, blink);

	spin_lock(&lamp->l); //~ wait-for-handler
	lamp->n++;
	spin_unlock(&lamp->l);
}

static void lamp_dim(struct work_struct *work)
{
	struct lamp *lamp = container_of(work, struct lamp, dim);

	mutex_lock(&lamp->m); //~ wait-for-handler
	lamp->n = 0;
	mutex_unlock(&lamp->m);
}

void lamp_setup(struct lamp *lamp)
{
	timer_setup(&lamp->blink, lamp_blink, 0);
	INIT_WORK(&lamp->dim, lamp_dim);
}

void lamp_off(struct lamp *lamp)
{
	spin_lock_bh(&lamp->l);
	lamp_quiet_timer(lamp, &lamp->blink); //~ wait-for-handler
	spin_unlock_bh(&lamp->l);
}

void lamp_dark(struct lamp *lamp)
{
	mutex_lock(&lamp->m);
	if (!lamp_end(&lamp->dim)) //~ wait-for-handler
		lamp->n = 1;
	mutex_unlock(&lamp->m);
}
