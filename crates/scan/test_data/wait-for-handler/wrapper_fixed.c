struct lamp { struct mutex m; struct work_struct dim; int n; };

/* Gives the lock up while it waits. */
static void lamp_end(struct lamp *lamp, struct work_struct *work)
{
	mutex_unlock(&lamp->m);
	cancel_work_sync(work);
	mutex_lock(&lamp->m);
}

static void lamp_dim(struct work_struct *work)
{
	struct lamp *lamp = container_of(work, struct lamp, dim);

	mutex_lock(&lamp->m);
	lamp->n = 0;
	mutex_unlock(&lamp->m);
}

void lamp_setup(struct lamp *lamp)
{
	INIT_WORK(&lamp->dim, lamp_dim);
}

void lamp_dark(struct lamp *lamp)
{
	mutex_lock(&lamp->m);
	lamp_end(lamp, &lamp->dim);
	lamp->n = 1;
	mutex_unlock(&lamp->m);
}
