/* The list is changed and walked under its lock, by all. */
struct entry {
	struct list_head link;
	int id;
};

struct box {
	spinlock_t lock;
	struct list_head entries;
};

void box_add(struct box *box, struct entry *entry)
{
	spin_lock(&box->lock);
	list_add(&entry->link, &box->entries);
	spin_unlock(&box->lock);
}

void box_append(struct box *box, struct entry *entry)
{
	spin_lock(&box->lock);
	list_add_tail(&entry->link, &box->entries);
	spin_unlock(&box->lock);
}

int box_count(struct box *box)
{
	struct entry *entry;
	int count = 0;

	spin_lock(&box->lock);
	list_for_each_entry(entry, &box->entries, link)
		count++;
	spin_unlock(&box->lock);
	return count;
}

bool box_has(struct box *box, int id)
{
	struct entry *entry;
	bool has = false;

	spin_lock(&box->lock);
	list_for_each_entry(entry, &box->entries, link) {
		if (entry->id == id)
			has = true;
	}
	spin_unlock(&box->lock);
	return has;
}

int box_sum(struct box *box)
{
	struct entry *entry;
	int sum = 0;

	spin_lock(&box->lock);
	list_for_each_entry(entry, &box->entries, link)
		sum += entry->id;
	spin_unlock(&box->lock);
	return sum;
}

static const struct file_operations box_operations = {
	.open = box_sum,
	.read = box_count,
	.write = box_add,
};
