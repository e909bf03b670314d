/* One error return forgets the unlock. */
struct table {
	struct mutex lock;
	int count;
};

int table_add(struct table *t, int value)
{
	int error;

	mutex_lock(&t->lock);
	if (t->count > 100)
		return -ENOSPC; //~ lock-leak
	error = table_store(t, value);
	if (error) {
		mutex_unlock(&t->lock);
		return error;
	}
	t->count++;
	mutex_unlock(&t->lock);
	return 0;
}
