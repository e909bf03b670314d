#include <pthread.h>

#include "raddle.h"

static int next = 1;

static int ticket(void)
{
    int mine = next; /* another thread may take the same one */
    next = mine + 1;
    return mine;
}

static void *customer(void *unused)
{
    raddle_begin("ticket");
    raddle_result(ticket());
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
