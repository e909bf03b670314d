/* Tested again under the lock; tested under the lock only; tested again in a helper. */
struct window {
	int active;
	struct rb_node node;
};

struct tree {
	spinlock_t lock;
	int windows;
};

static void remove_if_active(struct tree *t, struct window *w)
{
	if (w->active)
		t->windows--;
}

void discard_window(struct tree *t, struct window *w)
{
	if (w->active) {
		spin_lock(&t->lock);
		if (w->active)
			t->windows--;
		spin_unlock(&t->lock);
	}
}

void discard_window_locked_test(struct tree *t, struct window *w)
{
	spin_lock(&t->lock);
	if (w->active)
		t->windows--;
	spin_unlock(&t->lock);
}

void discard_window_by_helper(struct tree *t, struct window *w)
{
	if (w->active) {
		spin_lock(&t->lock);
		remove_if_active(t, w);
		t->windows += 0;
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
