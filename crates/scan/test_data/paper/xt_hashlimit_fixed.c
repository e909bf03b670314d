/* The shape of net/netfilter/xt_hashlimit.c as fixed in Linux 2.6.34. */
struct xt_hashlimit_htable {
	struct hlist_node node;
	atomic_t use;
	u_int8_t family;
};

static DEFINE_SPINLOCK(hashlimit_lock);
static HLIST_HEAD(hashlimit_htables);

static struct xt_hashlimit_htable *htable_find_get(const char *name, u_int8_t family)
{
	struct xt_hashlimit_htable *hinfo;
	struct hlist_node *pos;

	spin_lock_bh(&hashlimit_lock);
	hlist_for_each_entry(hinfo, pos, &hashlimit_htables, node) {
		if (!strcmp(name, hinfo->pde->name) && hinfo->family == family) {
			atomic_inc(&hinfo->use);
			spin_unlock_bh(&hashlimit_lock);
			return hinfo;
		}
	}
	spin_unlock_bh(&hashlimit_lock);
	return NULL;
}

static void htable_put(struct xt_hashlimit_htable *hinfo)
{
	spin_lock_bh(&hashlimit_lock);
	if (atomic_dec_and_test(&hinfo->use)) {
		hlist_del(&hinfo->node);
		htable_destroy(hinfo);
	}
	spin_unlock_bh(&hashlimit_lock);
}

static bool hashlimit_mt_check(const struct xt_mtchk_param *par)
{
	struct xt_hashlimit_info *r = par->matchinfo;

	r->hinfo = htable_find_get(r->name, par->family);
	return r->hinfo != NULL;
}

static void hashlimit_mt_destroy(const struct xt_mtdtor_param *par)
{
	const struct xt_hashlimit_info *r = par->matchinfo;

	htable_put(r->hinfo);
}

static struct xt_match hashlimit_mt_reg[] = {
	{
		.name       = "hashlimit",
		.checkentry = hashlimit_mt_check,
		.destroy    = hashlimit_mt_destroy,
	},
};
