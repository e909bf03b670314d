// One operation tests and takes.
#include <linux/atomic.h>

static atomic_t slots_in_use;
static int slots_max = 16;
static DEFINE_SPINLOCK(slots_lock);
static atomic_t seats_in_use;

void slot_put(void)
{
	atomic_dec(&slots_in_use);
}

int slot_get(void)
{
	if (!atomic_add_unless(&slots_in_use, 1, slots_max))
		return -EBUSY;
	return 0;
}

void seat_put(void)
{
	spin_lock(&slots_lock);
	atomic_dec(&seats_in_use);
	spin_unlock(&slots_lock);
}

int seat_get(void)
{
	spin_lock(&slots_lock);
	if (atomic_read(&seats_in_use) >= slots_max) {
		spin_unlock(&slots_lock);
		return -EBUSY;
	}
	atomic_inc(&seats_in_use);
	spin_unlock(&slots_lock);
	return 0;
}
