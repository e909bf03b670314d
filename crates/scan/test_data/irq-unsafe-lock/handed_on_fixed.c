/* Both run in interrupts: one is requested through a function that is given the handler. */
struct port { spinlock_t lock; int irq; int words; };

static irqreturn_t port_interrupt(int irq, void *data)
{
	struct port *p = data;

	spin_lock(&p->lock);
	p->words++;
	spin_unlock(&p->lock);
	return IRQ_HANDLED;
}

static irqreturn_t port_error_interrupt(int irq, void *data)
{
	struct port *p = data;

	spin_lock(&p->lock);
	p->words--;
	spin_unlock(&p->lock);
	return IRQ_HANDLED;
}

static int port_hook_irq(struct port *p, irq_handler_t handler)
{
	return request_irq(p->irq, handler, 0, "port", p);
}

int port_open(struct port *p)
{
	int err = port_hook_irq(p, port_interrupt);

	return err ? err : port_hook_irq(p, port_error_interrupt);
}
