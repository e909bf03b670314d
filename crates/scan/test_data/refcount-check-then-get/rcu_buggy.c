// RCU keeps the memory, not the counter.
#include <linux/kref.h>
#include <linux/rculist.h>

struct gate {
	struct hlist_node list;
	int id;
	struct kref refs;
};

static HLIST_HEAD(gates);

struct gate *gate_find(int id)
{
	struct gate *tmp, *found = NULL;

	rcu_read_lock();
	hlist_for_each_entry_rcu(tmp, &gates, list) {
		if (tmp->id != id)
			continue;
		found = tmp;
		kref_get(&found->refs); //~ refcount-check-then-get
		break;
	}
	rcu_read_unlock();
	return found;
}

void gate_put(struct gate *gate)
{
	kref_put(&gate->refs, gate_release);
}
