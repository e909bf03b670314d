// The sleeper is woken before the flag that it waits for is set.
#include <linux/wait.h>

struct engine {
	wait_queue_head_t idle;
	bool stopped;
	int refills;
};

static int engine_wait(struct engine *e)
{
	return wait_event_interruptible(e->idle, e->stopped);
}

static void engine_halt(struct engine *e)
{
	wake_up(&e->idle); //~ lost-wakeup
	e->stopped = true;
}

static long engine_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct engine *e = file->private_data;

	if (command)
		return engine_wait(e);
	engine_halt(e);
	return 0;
}

static const struct file_operations engine_fops = { .unlocked_ioctl = engine_ioctl };
