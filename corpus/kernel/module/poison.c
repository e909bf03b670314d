// SPDX-License-Identifier: MIT OR Apache-2.0
/* A write to a freed object, which the allocator's own checks notice when the object is used again. */
#include <linux/errno.h>
#include <linux/slab.h>

#include "bugs.h"

struct widget {
	unsigned long uses;
	char name[92];
};

static struct kmem_cache *widgets;
static struct widget *widget;

static noinline struct widget *make_widget(void)
{
	return kmem_cache_alloc(widgets, GFP_KERNEL);
}

static noinline void drop_widget(void)
{
	struct widget *old = READ_ONCE(widget);

	WRITE_ONCE(widget, NULL);
	if (old)
		kmem_cache_free(widgets, old);
}

static noinline void use_widget(void)
{
	struct widget *used = READ_ONCE(widget);

	/* BUG: it may have been freed since. */
	if (used)
		WRITE_ONCE(used->uses, 1);
}

long poison_call(unsigned int number, unsigned long argument, bool fixed)
{
	switch (number) {
	case 0:
		widgets = kmem_cache_create("raddle_widget", sizeof(struct widget), 0,
					    SLAB_CONSISTENCY_CHECKS | SLAB_POISON | SLAB_STORE_USER, NULL);
		if (!widgets)
			return -ENOMEM;
		widget = make_widget();
		return widget ? 0 : -ENOMEM;
	case 1:
		drop_widget();
		return 0;
	case 2:
		use_widget();
		return 0;
	case 3:
		return make_widget() ? 0 : -ENOMEM;
	default:
		return -EINVAL;
	}
}
