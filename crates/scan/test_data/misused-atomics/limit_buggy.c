// A limit is tested by one operation and used up by another.
#include <linux/atomic.h>

static atomic_t slots_in_use;
static int slots_max = 16;

void slot_put(void)
{
	atomic_dec(&slots_in_use);
}

int slot_get(void)
{
	if (atomic_read(&slots_in_use) >= slots_max) //~ misused-atomics
		return -EBUSY;
	atomic_inc(&slots_in_use);
	return 0;
}
