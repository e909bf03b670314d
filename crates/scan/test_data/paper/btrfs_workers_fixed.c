/* The shape of fs/btrfs/async-thread.c as fixed in Linux 2.6.31. */
struct btrfs_worker_thread {
	struct btrfs_workers *workers;
	struct list_head pending;
	struct task_struct *task;
	atomic_t num_pending;
	int idle;
};

struct btrfs_workers {
	int num_workers;
	char *name;
	spinlock_t lock;
};

static int worker_loop(void *arg)
{
	struct btrfs_worker_thread *worker = arg;
	struct btrfs_workers *workers;

	do {
		workers = worker->workers;
		run_ordered_completions(workers);
		schedule();
	} while (!kthread_should_stop());
	return 0;
}

int btrfs_start_workers(struct btrfs_workers *workers, int num_workers)
{
	struct btrfs_worker_thread *worker;
	int i;

	for (i = 0; i < num_workers; i++) {
		worker = kzalloc(sizeof(*worker), GFP_NOFS);
		if (!worker)
			return -ENOMEM;
		INIT_LIST_HEAD(&worker->pending);
		worker->workers = workers;
		worker->task = kthread_run(worker_loop, worker,
					   "btrfs-%s-%d", workers->name,
					   workers->num_workers + i);
		if (IS_ERR(worker->task)) {
			kfree(worker);
			return -ENOMEM;
		}
	}
	return 0;
}
