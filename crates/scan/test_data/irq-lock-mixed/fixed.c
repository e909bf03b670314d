/* All functions switch interrupts off. */
struct port {
	spinlock_t lock;
	int pending;
};

void port_push(struct port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	port->pending++;
	spin_unlock_irqrestore(&port->lock, flags);
}

void port_pop(struct port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	port->pending--;
	spin_unlock_irqrestore(&port->lock, flags);
}

void port_clear(struct port *port)
{
	spin_lock_irq(&port->lock);
	port->pending = 0;
	spin_unlock_irq(&port->lock);
}

int port_pending(struct port *port)
{
	int pending;

	spin_lock_irq(&port->lock);
	pending = port->pending;
	spin_unlock_irq(&port->lock);
	return pending;
}
