// A wait without a loop, and a signal before the change that it announces.
#include <pthread.h>

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	int length;
};

int queue_take(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	if (q->length == 0)
		pthread_cond_wait(&q->filled, &q->lock); //~ lost-wakeup
	q->length--;
	pthread_mutex_unlock(&q->lock);
	return 0;
}

int queue_take_all(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	while (!q->length)
		pthread_cond_wait(&q->filled, &q->lock);
	q->length = 0;
	pthread_mutex_unlock(&q->lock);
	return 0;
}

void queue_put(struct queue *q)
{
	pthread_cond_signal(&q->filled); //~ lost-wakeup
	pthread_mutex_lock(&q->lock);
	q->length = 1;
	pthread_mutex_unlock(&q->lock);
}
