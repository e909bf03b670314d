/* The shape of cleaner_kthread in fs/btrfs of Linux 2.6.30, Fig. 14 of the paper. */
struct btrfs_fs_info {
	struct task_struct *cleaner_kthread;
	struct mutex cleaner_mutex;
	int closing;
};

struct btrfs_root {
	struct btrfs_fs_info *fs_info;
};

static int cleaner_kthread(void *arg)
{
	struct btrfs_root *root = arg;

	do {
		smp_mb();
		if (root->fs_info->closing)
			break;
		mutex_lock(&root->fs_info->cleaner_mutex);
		btrfs_clean_old_snapshots(root);
		mutex_unlock(&root->fs_info->cleaner_mutex);
		schedule();
	} while (!kthread_should_stop());
	return 0;
}

struct btrfs_root *open_ctree(struct super_block *sb, struct btrfs_root *tree_root)
{
	struct btrfs_fs_info *fs_info = tree_root->fs_info;

	fs_info->cleaner_kthread = kthread_run(cleaner_kthread, tree_root, "btrfs-cleaner"); //~ stop-finished-thread
	if (IS_ERR(fs_info->cleaner_kthread))
		return NULL;
	return tree_root;
}

int close_ctree(struct btrfs_root *root)
{
	struct btrfs_fs_info *fs_info = root->fs_info;

	fs_info->closing = 1;
	smp_mb();
	kthread_stop(fs_info->cleaner_kthread);
	return 0;
}
