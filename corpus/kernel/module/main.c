// SPDX-License-Identifier: MIT OR Apache-2.0
/* A device whose calls race on purpose: the known bugs that raddle must find. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "bugs.h"

static long bugs_ioctl(struct file *file, unsigned int number, unsigned long argument)
{
	bool fixed = number >= FIXED;

	if (fixed)
		number -= FIXED;
	switch (number / 10 * 10) {
	case BUG_OPEN_CLOSE:
		return open_close_call(number % 10, argument, fixed);
	case BUG_WATCH:
		return watch_call(number % 10, argument, fixed);
	case BUG_TORN:
		return torn_call(number % 10, argument, fixed);
	case BUG_ERROR_VALUE:
		return error_value_call(number % 10, argument, fixed);
	case BUG_REFCOUNT:
		return refcount_call(number % 10, argument, fixed);
	case BUG_RCU:
		return rcu_call(number % 10, argument, fixed);
	case BUG_TIMER:
		return timer_call(number % 10, argument, fixed);
	case BUG_DOUBLE_FREE:
		return double_free_call(number % 10, argument, fixed);
	case BUG_COUNTER:
		return counter_call(number % 10, argument, fixed);
	case BUG_LOST_WAKEUP:
		return lost_wakeup_call(number % 10, argument, fixed);
	default:
		return -ENOTTY;
	}
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
