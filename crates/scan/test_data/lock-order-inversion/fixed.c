/* One order; a try-lock against the order; and a common outer lock. */
struct device_state {
	struct mutex dev_lock;
	struct mutex queue_lock;
	struct mutex a;
	struct mutex b;
	struct mutex outer;
};

void submit(struct device_state *s)
{
	mutex_lock(&s->dev_lock);
	mutex_lock(&s->queue_lock);
	mutex_unlock(&s->queue_lock);
	mutex_unlock(&s->dev_lock);
}

void flush(struct device_state *s)
{
	mutex_lock(&s->queue_lock);
	if (mutex_trylock(&s->dev_lock))
		mutex_unlock(&s->dev_lock);
	mutex_unlock(&s->queue_lock);
}

void one_way(struct device_state *s)
{
	mutex_lock(&s->outer);
	mutex_lock(&s->a);
	mutex_lock(&s->b);
	mutex_unlock(&s->b);
	mutex_unlock(&s->a);
	mutex_unlock(&s->outer);
}

void other_way(struct device_state *s)
{
	mutex_lock(&s->outer);
	mutex_lock(&s->b);
	mutex_lock(&s->a);
	mutex_unlock(&s->a);
	mutex_unlock(&s->b);
	mutex_unlock(&s->outer);
}
