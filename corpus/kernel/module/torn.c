// SPDX-License-Identifier: MIT OR Apache-2.0
/* Torn read: two words that belong together are written and read one after the other. */
#include <linux/spinlock.h>

#include "bugs.h"

static struct {
	long value;
	long twice;
} pair = { 1, 2 };
static DEFINE_SPINLOCK(lock);

long torn_call(unsigned int number, unsigned long argument, bool fixed)
{
	long value, twice;

	if (fixed)
		spin_lock(&lock);
	switch (number) {
	case 1:
		WRITE_ONCE(pair.value, argument);
		/* BUG: a reader may come here. */
		WRITE_ONCE(pair.twice, 2 * argument);
		value = twice = 0;
		break;
	case 2:
		value = READ_ONCE(pair.value);
		twice = READ_ONCE(pair.twice);
		break;
	default:
		value = 0;
		twice = 1;
	}
	if (fixed)
		spin_unlock(&lock);
	return twice == 2 * value ? 0 : -EIO;
}
