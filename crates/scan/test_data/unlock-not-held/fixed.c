/* The label stands behind the release; a caller's lock that is given away and taken back; a flag that says it. */
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
	mutex_unlock(&table->lock);
out:
	return err;
}

int table_wait(struct table *table)
{
	if (table_busy()) {
		mutex_unlock(&table->lock);
		table_sleep();
		mutex_lock(&table->lock);
	}
	table->used--;
	mutex_unlock(&table->lock);
	return 0;
}

void table_drop(struct table *table, bool locked)
{
	if (!locked)
		mutex_lock(&table->lock);
	table->used--;
	if (!locked)
		mutex_unlock(&table->lock);
}
