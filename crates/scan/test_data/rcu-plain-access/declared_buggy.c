// The declaration says who reads the pointer.
#include <linux/rcupdate.h>

struct rule {
	int verdict;
};

struct filter {
	struct mutex lock;
	struct rule __rcu *rule;
};

static int filter_ask(struct filter *f)
{
	struct rule *rule;
	int verdict = 0;

	rcu_read_lock();
	rule = f->rule; //~ rcu-plain-access
	if (rule)
		verdict = rule->verdict;
	rcu_read_unlock();
	return verdict;
}

static void filter_set(struct filter *f, struct rule *rule)
{
	f->rule = rule; //~ rcu-plain-access
}

static long filter_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	if (command)
		return filter_ask(file->private_data);
	filter_set(file->private_data, new_rule(argument));
	return 0;
}

static const struct file_operations filter_fops = { .unlocked_ioctl = filter_ioctl };
