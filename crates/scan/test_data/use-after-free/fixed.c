struct node { struct list_head list; int id; };
struct set { spinlock_t lock; int last; };

struct node *node_new(void);

void set_drop(struct set *s, struct node *n, int again)
{
	spin_lock(&s->lock);
	list_del(&n->list);
	s->last = n->id;
	kfree(n);
	n = node_new();
	s->last += n->id;
	spin_unlock(&s->lock);
}

void set_maybe(struct set *s, struct node *n, int drop)
{
	spin_lock(&s->lock);
	if (drop)
		kfree(n);
	if (!drop)
		s->last = n->id;
	spin_unlock(&s->lock);
}
