// SPDX-License-Identifier: MIT OR Apache-2.0
/* Visible only as a race: a message that is handed over by a flag, without any lock. */
#include <linux/errno.h>

#include <asm/barrier.h>

#include "bugs.h"

static struct {
	long words[2];
} message;
static int ready;

static void write_message(long value)
{
	WRITE_ONCE(message.words[0], value);
	WRITE_ONCE(message.words[1], value);
}

long publish_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 1:
		/* BUG: the reader is told before the message is there. */
		if (!fixed)
			smp_store_release(&ready, 1);
		write_message(argument);
		if (fixed)
			smp_store_release(&ready, 1);
		return 0;
	case 2:
		if (!smp_load_acquire(&ready))
			return -EAGAIN;
		/* Taken: the place is free for the next one. */
		write_message(0);
		return 0;
	}
	return -EINVAL;
}
