// SPDX-License-Identifier: MIT OR Apache-2.0
/* Interrupt against thread: a timer's handler and a call count in two steps; the fixed call shuts interrupts out. */
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>

#include "bugs.h"

static struct hrtimer timer;
static bool is_ready;
static long started, handled, total;

static void count(void)
{
	long seen = READ_ONCE(total);

	/* BUG in a thread that does not shut interrupts out: the handler's step is lost. */
	barrier();
	WRITE_ONCE(total, seen + 1);
}

static enum hrtimer_restart on_timer(struct hrtimer *unused)
{
	count();
	WRITE_ONCE(handled, handled + 1);
	return HRTIMER_NORESTART;
}

void timer_stop(void)
{
	if (is_ready)
		hrtimer_cancel(&timer);
}

long timer_call(unsigned int number, unsigned long argument, bool fixed)
{
	unsigned long flags;
	unsigned long i;

	switch (number) {
	case 0: /* start: fires after so many nanoseconds */
		if (!is_ready) {
			hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
			timer.function = on_timer;
			is_ready = true;
		}
		started++;
		hrtimer_start(&timer, ns_to_ktime(argument), HRTIMER_MODE_REL_PINNED_HARD);
		return 0;
	case 1: /* count so many times */
		for (i = 0; i < argument; i++) {
			if (fixed)
				local_irq_save(flags);
			count();
			if (fixed)
				local_irq_restore(flags);
		}
		started += argument;
		return 0;
	case 2: /* nothing may be lost */
		hrtimer_cancel(&timer);
		return total == started - (handled == 0) ? 0 : -EIO;
	default:
		return -EINVAL;
	}
}
