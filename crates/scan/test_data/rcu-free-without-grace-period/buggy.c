struct entry { struct list_head list; int id; };

void entry_remove(struct entry *e, spinlock_t *lock)
{
	spin_lock(lock);
	list_del_rcu(&e->list); //~ rcu-free-without-grace-period
	spin_unlock(lock);
	kfree(e); //~ rcu-free-without-grace-period
}
