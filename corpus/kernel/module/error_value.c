// SPDX-License-Identifier: MIT OR Apache-2.0
/* Wrong error: a resource that exists all the time is reported as missing while it is being moved. */
#include <linux/errno.h>
#include <linux/mutex.h>

#include "bugs.h"

static int slots[2] = { 7, 0 };
static DEFINE_MUTEX(lock);

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
	long result = -EINVAL;

	if (fixed)
		mutex_lock(&lock);
	if (number == 1)
		result = find(7);
	else if (number == 2)
		result = move(7);
	if (fixed)
		mutex_unlock(&lock);
	return result;
}
