/* One way reaches the common label without having taken the lock. */
struct table {
	struct mutex lock;
	int used;
};

int table_add(struct table *table)
{
	int err = -ENODEV;

	if (!table_ready())
		goto out;
	mutex_lock(&table->lock);
	table->used++;
	err = 0;
out:
	mutex_unlock(&table->lock); //~ unlock-not-held
	return err;
}
