/* Released on every way; and a function that takes the lock for its caller on all of them. */
struct box {
	spinlock_t lock;
	int full;
	int count;
};

void box_put(struct box *b, int n)
{
	spin_lock(&b->lock);
	if (b->full) {
		spin_unlock(&b->lock);
		return;
	}
	b->count += n;
	spin_unlock(&b->lock);
}

void box_enter(struct box *b)
{
	spin_lock(&b->lock);
	if (b->full)
		return;
	b->count++;
}
