/* Everybody reads the pointer by rcu_dereference(), one reader does not. */
struct rule {
	int verdict;
};

struct port {
	spinlock_t lock;
	struct list_head list;
	struct rule __rcu *rule;
};

void port_set(struct port *port, struct rule *rule)
{
	spin_lock(&port->lock);
	rcu_assign_pointer(port->rule, rule);
	spin_unlock(&port->lock);
}

int port_receive(struct port *port)
{
	struct rule *rule;
	int verdict;

	rcu_read_lock();
	rule = rcu_dereference(port->rule);
	verdict = rule->verdict;
	rcu_read_unlock();
	return verdict;
}

int port_send(struct port *port)
{
	struct rule *rule;
	int verdict;

	rcu_read_lock();
	rule = rcu_dereference(port->rule);
	verdict = rule->verdict + 1;
	rcu_read_unlock();
	return verdict;
}

int port_verdict(struct port *port)
{
	struct rule *rule = port->rule; //~ rcu-plain-access

	return rule->verdict;
}
