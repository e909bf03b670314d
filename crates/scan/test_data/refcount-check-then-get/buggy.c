/* A lookup that reads the counter before it takes a reference. */
struct session {
	refcount_t refs;
	struct list_head list;
	unsigned long id;
};

static LIST_HEAD(sessions);

struct session *session_lookup(unsigned long id)
{
	struct session *s;

	rcu_read_lock();
	list_for_each_entry_rcu(s, &sessions, list) {
		if (s->id == id) {
			if (refcount_read(&s->refs) > 0) { //~ refcount-check-then-get
				refcount_inc(&s->refs);
				rcu_read_unlock();
				return s;
			}
		}
	}
	rcu_read_unlock();
	return NULL;
}

void session_put(struct session *s)
{
	if (refcount_dec_and_test(&s->refs))
		kfree_rcu(s, rcu);
}
