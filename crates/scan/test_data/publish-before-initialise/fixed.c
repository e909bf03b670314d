/* Filled in first; or filled in under the lock that readers take. */
struct route {
	struct list_head list;
	struct net_device *dev;
	u32 dst;
	u32 metric;
};

static LIST_HEAD(routes);
static LIST_HEAD(slow_routes);
static DEFINE_SPINLOCK(routes_lock);

int route_add(struct net_device *dev, u32 dst)
{
	struct route *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return -ENOMEM;
	r->dst = dst;
	r->dev = dev;
	spin_lock(&routes_lock);
	list_add_rcu(&r->list, &routes);
	r->metric = 1;
	spin_unlock(&routes_lock);
	return 0;
}

static int route_output(struct sk_buff *skb)
{
	struct route *r;

	rcu_read_lock();
	list_for_each_entry_rcu(r, &routes, list)
		skb->dev = r->dev;
	rcu_read_unlock();
	spin_lock(&routes_lock);
	list_for_each_entry(r, &slow_routes, list)
		skb->priority = r->metric;
	spin_unlock(&routes_lock);
	return 0;
}

static const struct route_ops route_ops = {
	.output = route_output,
};
