// SPDX-License-Identifier: MIT OR Apache-2.0
/* Double free: both callers see the buffer and free it. */
#include <linux/atomic.h>
#include <linux/slab.h>

#include "bugs.h"

static void *buffer;

static long release(bool fixed)
{
	void *old;

	if (fixed) {
		old = xchg(&buffer, NULL);
	} else {
		old = READ_ONCE(buffer);
		/* BUG: the other one may have read it too. */
		WRITE_ONCE(buffer, NULL);
	}
	kfree(old);
	return 0;
}

long double_free_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 0:
		buffer = kmalloc(192, GFP_KERNEL);
		return buffer ? 0 : -ENOMEM;
	case 1:
	case 2:
		return release(fixed);
	default:
		return -EINVAL;
	}
}
