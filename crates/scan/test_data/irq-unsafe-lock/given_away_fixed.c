/* The lock is given away for a call while interrupts stay off. */
struct queue { spinlock_t lock; struct tasklet_struct done; int words; };

static void queue_done(struct tasklet_struct *t)
{
	struct queue *q = from_tasklet(q, t, done);

	spin_lock(&q->lock);
	q->words--;
	spin_unlock(&q->lock);
}

void queue_setup(struct queue *q)
{
	tasklet_setup(&q->done, queue_done);
}

static int queue_write(struct queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	q->words++;
	spin_unlock(&q->lock);
	queue_send(q);
	spin_lock(&q->lock);
	q->words++;
	spin_unlock_irqrestore(&q->lock, flags);
	return 0;
}

static const struct queue_ops queue_ops = { .write = queue_write };
