// Read and stored as the declaration asks for.
#include <linux/rcupdate.h>

struct rule {
	int verdict;
};

struct filter {
	struct mutex lock;
	struct rule __rcu *rule;
	struct rule *other;
};

static int filter_ask(struct filter *f)
{
	struct rule *rule;
	int verdict = 0;

	rcu_read_lock();
	rule = rcu_dereference(f->rule);
	if (rule)
		verdict = rule->verdict;
	rcu_read_unlock();
	return verdict;
}

static void filter_set(struct filter *f, struct rule *rule)
{
	f->other = rule;
	rcu_assign_pointer(f->rule, rule);
}

static long filter_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	if (command)
		return filter_ask(file->private_data);
	filter_set(file->private_data, new_rule(argument));
	return 0;
}

static const struct file_operations filter_fops = { .unlocked_ioctl = filter_ioctl };
