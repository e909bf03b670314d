/* A window is tested without the lock and removed under it, as once in ext3_discard_reservation. */
struct window {
	int active;
	struct rb_node node;
};

struct tree {
	spinlock_t lock;
	int windows;
};

void discard_window(struct tree *t, struct window *w)
{
	if (w->active) { //~ misused-test-and-set
		spin_lock(&t->lock);
		t->windows--;
		rb_erase(&w->node, &t->root);
		spin_unlock(&t->lock);
	}
}

void activate_window(struct tree *t, struct window *w)
{
	spin_lock(&t->lock);
	w->active = 1;
	t->windows++;
	spin_unlock(&t->lock);
}
