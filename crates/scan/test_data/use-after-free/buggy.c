struct node { struct list_head list; int id; };
struct set { spinlock_t lock; int last; };

void set_drop(struct set *s, struct node *n)
{
	spin_lock(&s->lock);
	list_del(&n->list);
	kfree(n); //~ use-after-free
	s->last = n->id; //~ use-after-free
	spin_unlock(&s->lock);
}
