// SPDX-License-Identifier: MIT OR Apache-2.0
/* A device whose calls wait for each other in loops without PAUSE, which nobody should write. */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

enum call {
	WAIT_IN_SHORT_LOOP = 101,
	WAIT_IN_LONG_LOOP = 102,
	TELL = 103,
	BEGIN_AND_END = 104,
	COUNT_BETWEEN = 105,
};

/* Instructions that a long loop makes beside looking. */
#define PADDING 40

static bool is_told;

/* Rounds of a loop that waits for nobody: it counts in memory, and no register tells one round from the next. */
#define ROUNDS 64
#define SEEN_MAX 40

static bool has_begun, has_ended;
static unsigned int rounds, seen;

static noinline bool next_round(void)
{
	bool goes_on;

	asm volatile("incl %1\n\tcmpl %2, %1\n\tsetbe %0" : "=q"(goes_on), "+m"(rounds) : "i"(ROUNDS));
	return goes_on;
}

static noinline long count_between(void)
{
	while (!READ_ONCE(has_begun))
		;
	while (next_round())
		if (!READ_ONCE(has_ended))
			asm volatile("incl %0" : "+m"(seen));
	return seen <= SEEN_MAX ? 0 : -EIO;
}

static long spin_ioctl(struct file *file, unsigned int number, unsigned long argument)
{
	switch (number) {
	case WAIT_IN_SHORT_LOOP:
		while (!READ_ONCE(is_told))
			;
		return 0;
	case WAIT_IN_LONG_LOOP:
		while (!READ_ONCE(is_told))
			asm volatile(".rept %c0; nop; .endr" :: "i"(PADDING));
		return 0;
	case TELL:
		WRITE_ONCE(is_told, true);
		return 0;
	case BEGIN_AND_END:
		WRITE_ONCE(has_begun, true);
		WRITE_ONCE(has_ended, true);
		return 0;
	case COUNT_BETWEEN:
		return count_between();
	default:
		return -ENOTTY;
	}
}

static const struct file_operations spin_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = spin_ioctl,
};

static struct miscdevice spin_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "raddle_spin",
	.fops = &spin_fops,
	.mode = 0666,
};

module_misc_device(spin_device);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Loops that wait, for testing how race finders notice them");
