// The thread is started through a helper, and ends when a flag is set, without asking.
#include <linux/kthread.h>

struct worker {
	struct task_struct *task;
	atomic_t done;
};

static int worker_start(struct worker *w, int (*fn)(void *), void *arg)
{
	w->task = kthread_run(fn, arg, "worker"); //~ stop-finished-thread
	return IS_ERR(w->task) ? -ENOMEM : 0;
}

static void worker_stop(struct worker *w)
{
	atomic_inc(&w->done);
	kthread_stop(w->task);
}

static struct worker tx;

static int tx_thread(void *arg)
{
	do {
		send_all(arg);
	} while (atomic_read(&tx.done) == 0);
	return 0;
}

int open_all(void *arg)
{
	return worker_start(&tx, tx_thread, arg);
}

void close_all(void)
{
	worker_stop(&tx);
}
