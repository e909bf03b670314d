/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One file per bug; each is a handful of ioctl numbers of /dev/raddle_bugs. */
#ifndef RADDLE_BUGS_H
#define RADDLE_BUGS_H

#include <linux/types.h>

/*
 * Numbers of calls: ten for each bug, above those that every file answers itself. Where a bug has a fixed twin, the call with the same number plus 1000 does
 * the same under a lock.
 */
enum bug {
	BUG_OPEN_CLOSE = 100,
	BUG_WATCH = 110,
	BUG_TORN = 120,
	BUG_ERROR_VALUE = 130,
	BUG_REFCOUNT = 140,
	BUG_RCU = 150,
	BUG_TIMER = 160,
	BUG_DOUBLE_FREE = 170,
	BUG_COUNTER = 180,
	BUG_LOST_WAKEUP = 190,
};

#define FIXED 1000

long open_close_call(unsigned int number, unsigned long argument, bool fixed);
long watch_call(unsigned int number, unsigned long argument, bool fixed);
long torn_call(unsigned int number, unsigned long argument, bool fixed);
long error_value_call(unsigned int number, unsigned long argument, bool fixed);
long refcount_call(unsigned int number, unsigned long argument, bool fixed);
long rcu_call(unsigned int number, unsigned long argument, bool fixed);
long timer_call(unsigned int number, unsigned long argument, bool fixed);
long double_free_call(unsigned int number, unsigned long argument, bool fixed);
long counter_call(unsigned int number, unsigned long argument, bool fixed);
long lost_wakeup_call(unsigned int number, unsigned long argument, bool fixed);
void timer_stop(void);

#endif
