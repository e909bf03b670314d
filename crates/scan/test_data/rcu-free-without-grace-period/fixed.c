struct entry { struct list_head list; struct rcu_head rcu; int id; };

void entry_remove(struct entry *e, spinlock_t *lock)
{
	spin_lock(lock);
	list_del_rcu(&e->list);
	spin_unlock(lock);
	kfree_rcu(e, rcu);
}

void entry_remove_slowly(struct entry *e, spinlock_t *lock)
{
	spin_lock(lock);
	list_del_rcu(&e->list);
	spin_unlock(lock);
	synchronize_rcu();
	kfree(e);
}
