// SPDX-License-Identifier: MIT OR Apache-2.0
/* Wrong error: a resource that exists all the time is reported as missing while it is being moved. */
#include <linux/compiler.h>
#include <linux/errno.h>

#include "bugs.h"

static int slots[2] = { 7, 0 };

static long find(int key)
{
	if (READ_ONCE(slots[0]) == key)
		return 0;
	if (READ_ONCE(slots[1]) == key)
		return 0;
	return -ENOENT;
}

static long move(int key)
{
	int from = READ_ONCE(slots[0]) == key ? 0 : 1;

	WRITE_ONCE(slots[from], 0);
	/* BUG: for a moment the key is nowhere. */
	WRITE_ONCE(slots[1 - from], key);
	return 0;
}

long error_value_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 1:
		return find(7);
	case 2:
		return move(7);
	default:
		return -EINVAL;
	}
}
