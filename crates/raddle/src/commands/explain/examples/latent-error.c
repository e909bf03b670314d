#include <pthread.h>

#include "raddle.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int price = 1;
static int cached = 1;

static void *change(void *to)
{
    raddle_begin("change");
    raddle_argument((long)to);
    pthread_mutex_lock(&lock);
    price = (int)(long)to;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock); /* of two changes, one may write the price last and the other one the cache */
    cached = (int)(long)to;
    pthread_mutex_unlock(&lock);
    raddle_end_operation();
    return NULL;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, change, (void *)2L);
    pthread_create(&two, NULL, change, (void *)3L);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    raddle_probe("price");
    raddle_result(price);
    raddle_end_operation();
    raddle_probe("cached");
    raddle_result(cached);
    raddle_end_operation();
    return 0;
}
