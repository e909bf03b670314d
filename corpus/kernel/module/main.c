// SPDX-License-Identifier: MIT OR Apache-2.0
/* A device whose calls race on purpose: the known bugs that raddle must find. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "bugs.h"

static const struct {
	bug_call *call;
	/* The whole fix is a lock around each call. */
	bool lock_fixes;
} bugs[] = {
	[BUG_OPEN_CLOSE / 10] = { open_close_call, true },
	[BUG_WATCH / 10] = { watch_call, true },
	[BUG_TORN / 10] = { torn_call, true },
	[BUG_ERROR_VALUE / 10] = { error_value_call, true },
	[BUG_REFCOUNT / 10] = { refcount_call },
	[BUG_RCU / 10] = { rcu_call },
	[BUG_TIMER / 10] = { timer_call },
	[BUG_DOUBLE_FREE / 10] = { double_free_call },
	[BUG_COUNTER / 10] = { counter_call },
	[BUG_LOST_WAKEUP / 10] = { lost_wakeup_call },
	[BUG_PUBLISH / 10] = { publish_call },
	[BUG_CONSOLE / 10] = { console_call },
	[BUG_POISON / 10] = { poison_call, true },
};
static DEFINE_MUTEX(lock);

static long bugs_ioctl(struct file *file, unsigned int number, unsigned long argument)
{
	bool fixed = number >= FIXED;
	unsigned int bug;
	bool locks;
	long result;

	if (fixed)
		number -= FIXED;
	bug = number / 10;
	if (bug >= ARRAY_SIZE(bugs) || !bugs[bug].call)
		return -ENOTTY;
	locks = fixed && bugs[bug].lock_fixes;
	if (locks)
		mutex_lock(&lock);
	result = bugs[bug].call(number % 10, argument, fixed);
	if (locks)
		mutex_unlock(&lock);
	return result;
}

static const struct file_operations bugs_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = bugs_ioctl,
};

static struct miscdevice bugs_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "raddle_bugs",
	.fops = &bugs_fops,
	.mode = 0666,
};

static int __init bugs_init(void)
{
	return misc_register(&bugs_device);
}

static void __exit bugs_exit(void)
{
	timer_stop();
	misc_deregister(&bugs_device);
}

module_init(bugs_init);
module_exit(bugs_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Races on purpose, for testing race finders");
