/* Readers under RCU find the route before its device is set. */
struct route {
	struct list_head list;
	struct net_device *dev;
	u32 dst;
};

static LIST_HEAD(routes);
static DEFINE_SPINLOCK(routes_lock);

int route_add(struct net_device *dev, u32 dst)
{
	struct route *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return -ENOMEM;
	r->dst = dst;
	spin_lock(&routes_lock);
	list_add_rcu(&r->list, &routes); //~ publish-before-initialise
	spin_unlock(&routes_lock);
	r->dev = dev;
	return 0;
}

static int route_output(struct sk_buff *skb)
{
	struct route *r;

	rcu_read_lock();
	list_for_each_entry_rcu(r, &routes, list)
		skb->dev = r->dev;
	rcu_read_unlock();
	return 0;
}

static const struct route_ops route_ops = {
	.output = route_output,
};
