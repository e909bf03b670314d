/* The thread gives up after an error; remove() stops it all the same. */
struct sensor {
	struct task_struct *poller;
	struct device *dev;
};

static int sensor_thread(void *data)
{
	struct sensor *s = data;

	while (!kthread_should_stop()) {
		if (sensor_read(s) < 0)
			return -EIO;
		msleep(100);
	}
	return 0;
}

static int sensor_start(struct sensor *s)
{
	s->poller = kthread_run(sensor_thread, s, "sensor"); //~ stop-finished-thread
	return IS_ERR(s->poller) ? PTR_ERR(s->poller) : 0;
}

static void sensor_stop(struct sensor *s)
{
	kthread_stop(s->poller);
}
