// Fig. 7 of the paper, after fs/proc of Linux 2.6.30: two matches that the conditions reject. The one in the same
// function runs under the big kernel lock both times; the one in proc_alloc_inode writes to an object that is not
// known to others yet.
#include <linux/fs.h>

struct proc_inode {
	struct pid *pid;
	spinlock_t lock;
	struct inode vfs_inode;
};

static struct kmem_cache *proc_inode_cachep;
static DEFINE_SPINLOCK(pid_lock);

static int proc_get_sb(struct file_system_type *fs_type, struct super_block *sb)
{
	struct proc_inode *ei;

	lock_kernel();
	ei = PROC_I(sb->s_root->d_inode);
	if (!ei->pid) {
		spin_lock(&pid_lock);
		ei->pid = get_pid(sb->s_fs_info);
		spin_unlock(&pid_lock);
	}
	if (!ei->pid)
		ei->pid = find_get_pid(1);
	unlock_kernel();
	return 0;
}

static struct inode *proc_alloc_inode(struct super_block *sb)
{
	struct proc_inode *ei;

	ei = (struct proc_inode *)kmem_cache_alloc(proc_inode_cachep, GFP_KERNEL);
	if (!ei)
		return NULL;
	ei->pid = NULL;
	return &ei->vfs_inode;
}

static struct file_system_type proc_fs_type = {
	.get_sb = proc_get_sb,
};

static const struct super_operations proc_sops = {
	.alloc_inode = proc_alloc_inode,
};
