/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One file per bug; each is a handful of ioctl numbers of /dev/raddle_bugs. */
#ifndef RADDLE_BUGS_H
#define RADDLE_BUGS_H

#include <linux/types.h>

/*
 * Numbers of calls: ten for each bug, above those that every file answers itself. The call with the same number plus
 * FIXED does the same without the bug.
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
	BUG_PUBLISH = 200,
	BUG_CONSOLE = 210,
	BUG_POISON = 220,
};

#define FIXED 1000

/* Answers the calls of one bug; `number` counts from 0. */
typedef long bug_call(unsigned int number, unsigned long argument, bool fixed);

bug_call open_close_call, watch_call, torn_call, error_value_call, refcount_call;
bug_call rcu_call, timer_call, double_free_call, counter_call, lost_wakeup_call;
bug_call publish_call, console_call, poison_call;
void timer_stop(void);

#endif
