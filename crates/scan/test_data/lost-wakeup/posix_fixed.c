// The wait is in a loop; the signal comes after the change, or in the same critical section.
#include <pthread.h>

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	int length;
};

int queue_take(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	while (!q->length)
		pthread_cond_wait(&q->filled, &q->lock);
	q->length--;
	pthread_mutex_unlock(&q->lock);
	return 0;
}

void wait_for(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	pthread_cond_wait(condition, lock);
}

void queue_put(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->length = 1;
	pthread_mutex_unlock(&q->lock);
	pthread_cond_signal(&q->filled);
}

void queue_refill(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	pthread_cond_signal(&q->filled);
	q->length = 1;
	pthread_mutex_unlock(&q->lock);
}

int queue_try(struct queue *q)
{
	if (pthread_mutex_trylock(&q->lock) != 0)
		return -1;
	q->length = 0;
	pthread_mutex_unlock(&q->lock);
	return 0;
}
