/* The item is found under the lock and used after its release. */
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
	spin_unlock(&table->lock);
	size = item->size; //~ use-after-unlock
	return size;
}
