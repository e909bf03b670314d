// Fig. 7 of the paper without what rejects its matches: no big kernel lock, and a writer of objects that are known.
#include <linux/fs.h>

struct proc_inode {
	struct pid *pid;
	spinlock_t lock;
	int users;
	struct inode vfs_inode;
};

static DEFINE_SPINLOCK(pid_lock);

static int proc_get_sb(struct file *file, struct super_block *sb)
{
	struct proc_inode *ei;

	ei = PROC_I(sb->s_root->d_inode);
	if (!ei->pid) { //~ misused-test-and-set
		spin_lock(&pid_lock);
		ei->pid = get_pid(sb->s_fs_info);
		ei->users++;
		spin_unlock(&pid_lock);
	}
	return 0;
}

static int proc_forget(struct file *file, struct super_block *sb)
{
	struct proc_inode *ei = PROC_I(sb->s_root->d_inode);

	spin_lock(&pid_lock);
	ei->pid = NULL;
	spin_unlock(&pid_lock);
	return 0;
}

static const struct file_operations proc_fops = {
	.open = proc_get_sb,
	.release = proc_forget,
};
