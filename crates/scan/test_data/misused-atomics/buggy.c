/* The last opener is found by a second operation. */
struct channel {
	atomic_t openers;
	int powered;
};

static int channel_release(struct inode *inode, struct file *file)
{
	struct channel *ch = file->private_data;

	atomic_dec(&ch->openers);
	if (atomic_read(&ch->openers) == 0) //~ misused-atomics
		power_off(ch);
	return 0;
}

static int channel_open(struct inode *inode, struct file *file)
{
	struct channel *ch = file->private_data;

	atomic_inc(&ch->openers);
	return 0;
}

static const struct file_operations channel_fops = {
	.open = channel_open,
	.release = channel_release,
};
