/* POSIX threads: the job is filled in after the thread was created. */
#include <pthread.h>

struct job {
	int input;
	int output;
	pthread_t thread;
};

static void *work(void *arg)
{
	struct job *job = arg;

	job->output = job->input * 2; //~ unsynchronised-thread-creation
	return NULL;
}

int start(struct job *job, int input)
{
	int error = pthread_create(&job->thread, NULL, work, job);

	if (error)
		return error;
	job->input = input;
	return 0;
}
