// SPDX-License-Identifier: MIT OR Apache-2.0
/* Lost wake-up: the sleeper looks at the flag before it is on the queue, and never again. */
#include <linux/errno.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "bugs.h"

static DECLARE_WAIT_QUEUE_HEAD(queue);
static bool is_done;

static long wait_for_it(void)
{
	DEFINE_WAIT(wait);

	if (READ_ONCE(is_done))
		return 0;
	/* BUG: the waker may be through by now. */
	prepare_to_wait(&queue, &wait, TASK_INTERRUPTIBLE);
	schedule();
	finish_wait(&queue, &wait);
	return 0;
}

long lost_wakeup_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 1:
		if (fixed)
			return wait_event_interruptible(queue, READ_ONCE(is_done));
		return wait_for_it();
	case 2:
		WRITE_ONCE(is_done, true);
		wake_up(&queue);
		return 0;
	default:
		return -EINVAL;
	}
}
