// SPDX-License-Identifier: MIT OR Apache-2.0
/* Torn read: two words that belong together are written and read one after the other. */
#include <linux/compiler.h>
#include <linux/errno.h>

#include "bugs.h"

static struct {
	long value;
	long twice;
} pair = { 1, 2 };

static long put(long value)
{
	WRITE_ONCE(pair.value, value);
	/* BUG: a reader may come here. */
	WRITE_ONCE(pair.twice, 2 * value);
	return 0;
}

static long look(void)
{
	long value = READ_ONCE(pair.value);
	long twice = READ_ONCE(pair.twice);

	return twice == 2 * value ? 0 : -EIO;
}

long torn_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 1:
		return put(argument);
	case 2:
		return look();
	default:
		return -EINVAL;
	}
}
