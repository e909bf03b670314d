// SPDX-License-Identifier: MIT OR Apache-2.0
/* Unmount against removal of a watch: both take the watch off its list, each after its own check. */
#include <linux/list.h>
#include <linux/slab.h>

#include "bugs.h"

struct watch {
	struct list_head list;
	bool listed;
};

static LIST_HEAD(watches);
static struct watch *the_watch;

static void take_off(struct watch *watch)
{
	/* BUG: two may pass this check; the second list_del finds poison. */
	if (READ_ONCE(watch->listed)) {
		list_del(&watch->list);
		WRITE_ONCE(watch->listed, false);
	}
}

long watch_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 0:
		the_watch = kzalloc(sizeof(*the_watch), GFP_KERNEL);
		if (!the_watch)
			return -ENOMEM;
		list_add(&the_watch->list, &watches);
		the_watch->listed = true;
		return 0;
	case 1: /* remove the watch */
	case 2: /* unmount */
		take_off(the_watch);
		return 0;
	default:
		return -EINVAL;
	}
}
