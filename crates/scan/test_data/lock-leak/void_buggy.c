/* A function without result forgets the lock on its way out. */
struct box {
	spinlock_t lock;
	int full;
	int count;
};

void box_put(struct box *b, int n)
{
	spin_lock(&b->lock);
	if (b->full)
		return; //~ lock-leak
	b->count += n;
	spin_unlock(&b->lock);
}
