/* The same lookup with one operation; and a test under the lock of the last put. */
struct session {
	refcount_t refs;
	refcount_t users;
	struct list_head list;
	unsigned long id;
};

static LIST_HEAD(sessions);
static DEFINE_SPINLOCK(sessions_lock);

struct session *session_lookup(unsigned long id)
{
	struct session *s;

	rcu_read_lock();
	list_for_each_entry_rcu(s, &sessions, list) {
		if (s->id == id && refcount_inc_not_zero(&s->refs)) {
			rcu_read_unlock();
			return s;
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

int session_use(struct session *s)
{
	int ok = 0;

	spin_lock(&sessions_lock);
	if (refcount_read(&s->users) > 0) {
		refcount_inc(&s->users);
		ok = 1;
	}
	spin_unlock(&sessions_lock);
	return ok;
}

void session_unuse(struct session *s)
{
	spin_lock(&sessions_lock);
	if (refcount_dec_and_test(&s->users))
		list_del(&s->list);
	spin_unlock(&sessions_lock);
}
