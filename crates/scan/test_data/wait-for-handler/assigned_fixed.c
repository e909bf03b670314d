/* The same handlers, waited for without their locks. */
struct pump {
	spinlock_t lock;
	struct mutex big;
	struct mutex plan;
	struct hrtimer tick;
	struct task_struct *worker;
	struct workqueue_struct *queue;
	struct work_struct refill;
	int level;
	int speed;
	int stock;
};

static enum hrtimer_restart pump_tick(struct hrtimer *t)
{
	struct pump *p = container_of(t, struct pump, tick);

	spin_lock(&p->lock);
	p->level++;
	spin_unlock(&p->lock);
	return HRTIMER_NORESTART;
}

static int pump_thread(void *data)
{
	struct pump *p = data;

	while (!kthread_should_stop()) {
		mutex_lock(&p->big);
		p->speed--;
		mutex_unlock(&p->big);
	}
	return 0;
}

static void pump_refill(struct work_struct *work)
{
	struct pump *p = container_of(work, struct pump, refill);

	mutex_lock(&p->plan);
	p->stock = 100;
	mutex_unlock(&p->plan);
}

int pump_setup(struct pump *p)
{
	hrtimer_init(&p->tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	p->tick.function = pump_tick;
	INIT_WORK(&p->refill, pump_refill);
	p->worker = kthread_run(pump_thread, p, "pump");
	return IS_ERR(p->worker) ? -ENOMEM : 0;
}

void pump_want(struct pump *p)
{
	queue_work(p->queue, &p->refill);
}

void pump_pause(struct pump *p)
{
	hrtimer_cancel(&p->tick);
	spin_lock_bh(&p->lock);
	p->level = 0;
	spin_unlock_bh(&p->lock);
}

void pump_halt(struct pump *p)
{
	kthread_stop(p->worker);
	mutex_lock(&p->big);
	p->speed = 0;
	mutex_unlock(&p->big);
}

void pump_empty(struct pump *p)
{
	/* The thread's lock is not the one that the work takes. */
	mutex_lock(&p->big);
	flush_workqueue(p->queue);
	mutex_unlock(&p->big);
}
