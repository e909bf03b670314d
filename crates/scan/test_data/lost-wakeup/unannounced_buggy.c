// Two of the three who end the wait wake the sleeper.
#include <linux/wait.h>

struct link {
	wait_queue_head_t queue;
	bool down;
};

static int link_wait(struct link *l)
{
	return wait_event_interruptible(l->queue, l->down);
}

static void link_lost(struct link *l)
{
	l->down = true;
	wake_up_all(&l->queue);
}

static void link_closed(struct link *l)
{
	l->down = true;
	wake_up_all(&l->queue);
}

static void link_fault(struct link *l)
{
	l->down = true; //~ lost-wakeup
}

static long link_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct link *l = file->private_data;

	switch (command) {
	case 0:
		return link_wait(l);
	case 1:
		link_lost(l);
		break;
	case 2:
		link_closed(l);
		break;
	default:
		link_fault(l);
	}
	return 0;
}

static const struct file_operations link_fops = { .unlocked_ioctl = link_ioctl };
