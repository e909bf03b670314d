/* Flags that forbid sleeping; released before; a threaded handler; guards that end. */
struct port {
	spinlock_t lock;
	struct mutex mutex;
	void *buffer;
};

int port_open(struct port *p)
{
	void *buffer;

	spin_lock_bh(&p->lock);
	p->buffer = kmalloc(4096, GFP_ATOMIC);
	spin_unlock_bh(&p->lock);
	buffer = kmalloc(4096, GFP_KERNEL);
	scoped_guard(spinlock, &p->lock) {
		p->buffer = buffer;
	}
	msleep(10);
	return 0;
}

static int port_flush(struct port *p)
{
	if (!spin_trylock(&p->lock)) {
		msleep(1);
		return -EBUSY;
	}
	spin_unlock(&p->lock);
	return 0;
}

static irqreturn_t port_thread(int irq, void *data)
{
	struct port *p = data;

	mutex_lock(&p->mutex);
	port_flush(p);
	mutex_unlock(&p->mutex);
	return IRQ_HANDLED;
}

int port_start(struct port *p)
{
	return request_threaded_irq(p->irq, NULL, port_thread, 0, "port", p);
}
