/* An allocation that may sleep under a spinlock; a mutex in an interrupt handler; a helper that sleeps. */
struct port {
	spinlock_t lock;
	struct mutex mutex;
	void *buffer;
};

static void port_reset(struct port *p)
{
	msleep(10);
}

int port_open(struct port *p)
{
	spin_lock_bh(&p->lock);
	p->buffer = kmalloc(4096, GFP_KERNEL); //~ sleep-in-atomic
	spin_unlock_bh(&p->lock);
	return 0;
}

static irqreturn_t port_irq(int irq, void *data)
{
	struct port *p = data;

	mutex_lock(&p->mutex); //~ sleep-in-atomic
	mutex_unlock(&p->mutex);
	return IRQ_HANDLED;
}

static void port_recover(struct port *p)
{
	port_reset(p);
}

void port_error(struct port *p)
{
	unsigned long flags;

	spin_lock_irqsave(&p->lock, flags);
	port_recover(p); //~ sleep-in-atomic
	spin_unlock_irqrestore(&p->lock, flags);
}

int port_start(struct port *p)
{
	return request_irq(p->irq, port_irq, 0, "port", p);
}
