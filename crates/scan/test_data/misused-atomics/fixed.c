/* One operation; a read that only wakes; both under a lock. */
struct channel {
	atomic_t openers;
	atomic_t pending;
	atomic_t users;
	struct mutex lock;
};

static int channel_release(struct inode *inode, struct file *file)
{
	struct channel *ch = file->private_data;

	if (atomic_dec_and_test(&ch->openers))
		power_off(ch);
	atomic_dec(&ch->pending);
	if (atomic_read(&ch->pending) == 0)
		wake_up(&ch->wait);
	mutex_lock(&ch->lock);
	atomic_dec(&ch->users);
	if (atomic_read(&ch->users) == 0)
		power_off(ch);
	mutex_unlock(&ch->lock);
	return 0;
}

static int channel_open(struct inode *inode, struct file *file)
{
	struct channel *ch = file->private_data;

	atomic_inc(&ch->openers);
	atomic_inc(&ch->pending);
	mutex_lock(&ch->lock);
	atomic_inc(&ch->users);
	mutex_unlock(&ch->lock);
	return 0;
}

static const struct file_operations channel_fops = {
	.open = channel_open,
	.release = channel_release,
};
