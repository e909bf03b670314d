/* Device then queue in one function; queue then, through a helper, device in the other. */
struct device_state {
	struct mutex dev_lock;
	struct mutex queue_lock;
};

static void touch_device(struct device_state *s)
{
	mutex_lock(&s->dev_lock); //~ lock-order-inversion
	mutex_unlock(&s->dev_lock);
}

void submit(struct device_state *s)
{
	mutex_lock(&s->dev_lock);
	mutex_lock(&s->queue_lock); //~ lock-order-inversion
	mutex_unlock(&s->queue_lock);
	mutex_unlock(&s->dev_lock);
}

void flush(struct device_state *s)
{
	mutex_lock(&s->queue_lock);
	touch_device(s);
	mutex_unlock(&s->queue_lock);
}
