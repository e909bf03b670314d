// Set first; or what is written after the wake-up does not end the wait.
#include <linux/wait.h>

struct engine {
	wait_queue_head_t idle;
	bool stopped;
	bool busy;
};

static int engine_wait(struct engine *e)
{
	return wait_event_interruptible(e->idle, e->stopped && !e->busy);
}

static void engine_halt(struct engine *e)
{
	e->stopped = true;
	wake_up(&e->idle);
}

static void engine_begin(struct engine *e)
{
	wake_up(&e->idle);
	e->busy = true;
}

static void engine_again(struct engine *e)
{
	wake_up(&e->idle);
	e->stopped = true;
	wake_up(&e->idle);
}

static long engine_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct engine *e = file->private_data;

	switch (command) {
	case 0:
		return engine_wait(e);
	case 1:
		engine_begin(e);
		break;
	case 2:
		engine_again(e);
		break;
	default:
		engine_halt(e);
	}
	return 0;
}

static const struct file_operations engine_fops = { .unlocked_ioctl = engine_ioctl };
