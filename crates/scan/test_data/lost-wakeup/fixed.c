/* Tested after the state was set; or waker and waiter share a lock. */
struct queue {
	int pending;
	int done;
	spinlock_t lock;
	struct task_struct *worker;
};

static int worker(void *data)
{
	struct queue *q = data;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!q->pending)
			schedule();
		__set_current_state(TASK_RUNNING);
		q->pending = 0;
		handle(q);
		spin_lock(&q->lock);
		if (!q->done) {
			set_current_state(TASK_INTERRUPTIBLE);
			spin_unlock(&q->lock);
			schedule();
			spin_lock(&q->lock);
		}
		spin_unlock(&q->lock);
	}
	return 0;
}

void queue_kick(struct queue *q)
{
	q->pending = 1;
	wake_up_process(q->worker);
}

void queue_done(struct queue *q)
{
	spin_lock(&q->lock);
	q->done = 1;
	spin_unlock(&q->lock);
	wake_up_process(q->worker);
}

int queue_start(struct queue *q)
{
	q->worker = kthread_create(worker, q, "worker");
	wake_up_process(q->worker);
	return 0;
}
