// Taken first; or on another object.
#include <linux/kref.h>
#include <linux/workqueue.h>

struct job {
	struct kref ref;
	struct work_struct work;
	struct job *next;
	int result;
};

static void job_free(struct kref *ref)
{
	kfree(container_of(ref, struct job, ref));
}

static void job_run(struct work_struct *work)
{
	struct job *job = container_of(work, struct job, work);

	job->result = 1;
	kref_put(&job->ref, job_free);
}

void job_prepare(struct job *job)
{
	INIT_WORK(&job->work, job_run);
}

void job_submit(struct job *job, struct job *other)
{
	kref_get(&job->ref);
	schedule_work(&job->work);
	kref_get(&other->ref);
}
