struct card { spinlock_t lock; int events; };

static irqreturn_t card_interrupt(int irq, void *data)
{
	struct card *c = data;

	spin_lock(&c->lock); //~ irq-unsafe-lock
	c->events++;
	spin_unlock(&c->lock);
	return IRQ_HANDLED;
}

int card_open(struct card *c, int irq)
{
	return request_irq(irq, card_interrupt, 0, "card", c);
}

long card_ioctl(struct card *c)
{
	spin_lock(&c->lock); //~ irq-unsafe-lock
	c->events = 0;
	spin_unlock(&c->lock);
	return 0;
}

static const struct file_operations ops = { .unlocked_ioctl = card_ioctl };
