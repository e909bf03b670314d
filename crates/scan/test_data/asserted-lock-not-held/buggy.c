struct tree { struct mutex lock; int depth; };

static void tree_grow(struct tree *t)
{
	lockdep_assert_held(&t->lock); //~ asserted-lock-not-held
	t->depth++;
}

long insert_ioctl(struct tree *t)
{
	mutex_lock(&t->lock);
	tree_grow(t);
	mutex_unlock(&t->lock);
	return 0;
}

long balance_ioctl(struct tree *t)
{
	tree_grow(t); //~ asserted-lock-not-held
	return 0;
}

static const struct file_operations ops = { .unlocked_ioctl = insert_ioctl, .compat_ioctl = balance_ioctl };
