// SPDX-License-Identifier: MIT OR Apache-2.0
/* Reference count: taken after a check that the last holder may outrun; the kernel's refcount_t complains. */
#include <linux/refcount.h>
#include <linux/slab.h>

#include "bugs.h"

struct object {
	refcount_t count;
};

static struct object object;

static long get(bool fixed)
{
	if (fixed)
		return refcount_inc_not_zero(&object.count) ? 0 : -ENOENT;
	if (refcount_read(&object.count) == 0)
		return -ENOENT;
	/* BUG: the count may be zero by now. */
	refcount_inc(&object.count);
	return 0;
}

long refcount_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 0:
		refcount_set(&object.count, 1);
		return 0;
	case 1:
		return get(fixed);
	case 2:
		return refcount_dec_and_test(&object.count) ? 1 : 0;
	default:
		return -EINVAL;
	}
}
