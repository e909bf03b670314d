// Takes a reference only if there is still one, or holds the lock under which the last one goes.
#include <linux/kref.h>
#include <linux/rculist.h>

struct gate {
	struct hlist_node list;
	int id;
	struct kref refs;
};

struct door {
	struct hlist_node list;
	struct kref refs;
};

static HLIST_HEAD(gates);
static HLIST_HEAD(doors);
static DEFINE_SPINLOCK(doors_lock);

struct gate *gate_find(int id)
{
	struct gate *tmp, *found = NULL;

	rcu_read_lock();
	hlist_for_each_entry_rcu(tmp, &gates, list) {
		if (tmp->id != id)
			continue;
		if (!kref_get_unless_zero(&tmp->refs))
			continue;
		found = tmp;
		break;
	}
	rcu_read_unlock();
	return found;
}

struct gate *gate_again(struct gate *gate)
{
	rcu_read_lock();
	kref_get(&gate->refs);
	rcu_read_unlock();
	return gate;
}

void gate_put(struct gate *gate)
{
	kref_put(&gate->refs, gate_release);
}

struct door *door_first(void)
{
	struct door *tmp;

	spin_lock(&doors_lock);
	hlist_for_each_entry_rcu(tmp, &doors, list) {
		kref_get(&tmp->refs);
		break;
	}
	spin_unlock(&doors_lock);
	return tmp;
}

void door_put(struct door *door)
{
	spin_lock(&doors_lock);
	kref_put(&door->refs, door_release);
	spin_unlock(&doors_lock);
}
