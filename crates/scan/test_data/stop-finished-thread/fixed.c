/* A reference is held; or the thread waits to be stopped. */
struct sensor {
	struct task_struct *poller;
	struct task_struct *logger;
};

static int sensor_thread(void *data)
{
	struct sensor *s = data;

	while (!kthread_should_stop()) {
		if (sensor_read(s) < 0)
			break;
		msleep(100);
	}
	return 0;
}

static int logger_thread(void *data)
{
	struct sensor *s = data;

	while (!kthread_should_stop()) {
		if (sensor_log(s) < 0)
			break;
	}
	while (!kthread_should_stop())
		schedule();
	return 0;
}

static int sensor_start(struct sensor *s)
{
	s->poller = kthread_run(sensor_thread, s, "sensor");
	if (IS_ERR(s->poller))
		return PTR_ERR(s->poller);
	get_task_struct(s->poller);
	return 0;
}

static int logger_start(struct sensor *s)
{
	s->logger = kthread_run(logger_thread, s, "logger");
	return 0;
}

static void sensor_stop(struct sensor *s)
{
	kthread_stop(s->poller);
	put_task_struct(s->poller);
	kthread_stop(s->logger);
}
