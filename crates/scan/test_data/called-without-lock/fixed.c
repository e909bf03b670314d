struct q { spinlock_t lock; int len; };

static void __q_take(struct q *q)
{
	q->len--;
}

long q_one(struct q *q) { spin_lock(&q->lock); __q_take(q); spin_unlock(&q->lock); return 0; }
long q_two(struct q *q) { spin_lock(&q->lock); __q_take(q); spin_unlock(&q->lock); return 0; }
long q_three(struct q *q) { spin_lock(&q->lock); __q_take(q); spin_unlock(&q->lock); return 0; }
long q_four(struct q *q) { spin_lock(&q->lock); __q_take(q); spin_unlock(&q->lock); return 0; }
long q_five(struct q *q)
{
	if (!spin_trylock(&q->lock))
		return -EBUSY;
	__q_take(q);
	spin_unlock(&q->lock);
	return 0;
}

static const struct file_operations ops = { .read = q_one, .write = q_two, .poll = q_three, .llseek = q_four, .unlocked_ioctl = q_five };
