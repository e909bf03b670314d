// SPDX-License-Identifier: MIT OR Apache-2.0
/* Null dereference: a user looks at the session twice, a closer clears it in between. */
#include <linux/compiler.h>
#include <linux/errno.h>

#include "bugs.h"

static struct session {
	long uses;
} only_session;

static struct session *session;

static long use(void)
{
	if (!READ_ONCE(session))
		return -ENODEV;
	/* BUG: may have gone since the check. */
	return ++READ_ONCE(session)->uses;
}

long open_close_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 0: /* open */
		only_session.uses = 0;
		session = &only_session;
		return 0;
	case 1:
		return use();
	case 2: /* close */
		WRITE_ONCE(session, NULL);
		return 0;
	default:
		return -EINVAL;
	}
}
