/* The state is set after the test. */
struct queue {
	int pending;
	struct task_struct *worker;
};

static int worker(void *data)
{
	struct queue *q = data;

	for (;;) {
		if (!q->pending) { //~ lost-wakeup
			set_current_state(TASK_INTERRUPTIBLE);
			schedule();
		}
		q->pending = 0;
		handle(q);
	}
	return 0;
}

void queue_kick(struct queue *q)
{
	q->pending = 1;
	wake_up_process(q->worker);
}

int queue_start(struct queue *q)
{
	q->worker = kthread_create(worker, q, "worker");
	wake_up_process(q->worker);
	return 0;
}
