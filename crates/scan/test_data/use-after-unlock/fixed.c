/* Used under the lock; or kept by a reference. */
struct item {
	struct list_head entry;
	int id;
	int size;
	struct kref ref;
};

struct table {
	spinlock_t lock;
	struct list_head items;
};

int table_size(struct table *table, int id)
{
	struct item *item;
	int size;

	spin_lock(&table->lock);
	item = table_find(table, id);
	if (!item) {
		spin_unlock(&table->lock);
		return 0;
	}
	size = item->size;
	spin_unlock(&table->lock);
	return size;
}

int table_size_kept(struct table *table, int id)
{
	struct item *item;
	int size;

	spin_lock(&table->lock);
	item = table_find(table, id);
	if (!item) {
		spin_unlock(&table->lock);
		return 0;
	}
	kref_get(&item->ref);
	spin_unlock(&table->lock);
	size = item->size;
	item_put(item);
	return size;
}
