// SPDX-License-Identifier: MIT OR Apache-2.0
/* A NULL dereference under the console lock: the thread dies with it, and the kernel cannot print a word any more. */
#include <linux/atomic.h>
#include <linux/console.h>
#include <linux/errno.h>

#include "bugs.h"

struct cursor {
	unsigned int column;
};

static struct cursor only = { .column = 7 };
static struct cursor *cursor = &only;

static noinline long draw_cursor(bool fixed)
{
	struct cursor *at;
	long column = 0;

	console_lock();
	at = READ_ONCE(cursor);
	if (at) {
		/* BUG: it may have been hidden since. */
		if (!fixed)
			at = READ_ONCE(cursor);
		column = READ_ONCE(at->column);
	}
	console_unlock();
	return column == 7 || !at ? 0 : -EIO;
}

long console_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 1:
		WRITE_ONCE(cursor, NULL);
		return 0;
	case 2:
		return draw_cursor(fixed);
	default:
		return -EINVAL;
	}
}
