// SPDX-License-Identifier: MIT OR Apache-2.0
/* RCU misuse: the old version is poisoned at once instead of after a grace period. */
#include <linux/bug.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "bugs.h"

#define ALIVE 0x600d
#define DEAD 0xdead

struct version {
	struct rcu_head head;
	int state;
	int value;
};

static struct version __rcu *current_version;

static void bury(struct rcu_head *head)
{
	kfree(container_of(head, struct version, head));
}

static long publish(int value, bool fixed)
{
	struct version *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	struct version *old;

	if (!fresh)
		return -ENOMEM;
	fresh->state = ALIVE;
	fresh->value = value;
	old = rcu_replace_pointer(current_version, fresh, true);
	if (!old)
		return 0;
	if (!fixed)
		/* BUG: a reader may still be looking at it. */
		WRITE_ONCE(old->state, DEAD);
	call_rcu(&old->head, bury);
	return 0;
}

static long look(void)
{
	struct version *version;
	long value;

	rcu_read_lock();
	version = rcu_dereference(current_version);
	value = version ? READ_ONCE(version->value) : -ENOENT;
	WARN_ON(version && READ_ONCE(version->state) != ALIVE);
	rcu_read_unlock();
	return value;
}

long rcu_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 0:
	case 2:
		return publish((int)argument, fixed);
	case 1:
		return look();
	default:
		return -EINVAL;
	}
}
