/* The loop tests before it prepares to wait. */
struct buffer {
	int ready;
	wait_queue_head_t wait;
};

int buffer_wait(struct buffer *b)
{
	DEFINE_WAIT(wait);

	while (!b->ready) { //~ lost-wakeup
		prepare_to_wait(&b->wait, &wait, TASK_UNINTERRUPTIBLE);
		schedule();
	}
	finish_wait(&b->wait, &wait);
	return 0;
}

static irqreturn_t buffer_irq(int irq, void *data)
{
	struct buffer *b = data;

	b->ready = 1;
	wake_up(&b->wait);
	return IRQ_HANDLED;
}

int buffer_open(struct buffer *b)
{
	return request_irq(b->irq, buffer_irq, 0, "buffer", b);
}
