// SPDX-License-Identifier: MIT OR Apache-2.0
/* Visible only as a race: statistics that nobody checks, without any lock. */
#include <linux/atomic.h>
#include <linux/errno.h>

#include "bugs.h"

static unsigned long events;
static atomic_long_t safe_events;

long counter_call(unsigned int number, unsigned long argument, bool fixed)
{
	if (number != 1 && number != 2)
		return -EINVAL;
	if (fixed)
		atomic_long_inc(&safe_events);
	else
		/* BUG: an increment may be lost. */
		events++;
	return 0;
}
