// SPDX-License-Identifier: MIT OR Apache-2.0
/* Null dereference: a user looks at the session twice, a closer clears it in between. */
#include <linux/slab.h>

#include "bugs.h"

struct session {
	long uses;
};

static struct session *session;

static long use(void)
{
	if (!READ_ONCE(session))
		return -ENODEV;
	/* BUG: may have gone since the check. */
	return ++READ_ONCE(session)->uses;
}

static long close_session(void)
{
	struct session *old = READ_ONCE(session);

	WRITE_ONCE(session, NULL);
	kfree(old);
	return 0;
}

long open_close_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 0:
		session = kzalloc(sizeof(*session), GFP_KERNEL);
		return session ? 0 : -ENOMEM;
	case 1:
		return use();
	case 2:
		return close_session();
	default:
		return -EINVAL;
	}
}
