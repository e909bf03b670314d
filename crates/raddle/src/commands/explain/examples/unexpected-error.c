#include <pthread.h>

#include "raddle.h"

static int stock = 1;

static void take(void)
{
    int is_there = __atomic_load_n(&stock, __ATOMIC_SEQ_CST) > 0;
    if (!is_there)
        raddle_result(0);
    else if (__atomic_fetch_sub(&stock, 1, __ATOMIC_SEQ_CST) > 0)
        raddle_result(1);
    else
        raddle_result_error("gone"); /* it was there a moment ago */
}

static void *customer(void *unused)
{
    raddle_begin("take");
    take();
    raddle_end_operation();
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, customer, NULL);
    pthread_create(&two, NULL, customer, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
