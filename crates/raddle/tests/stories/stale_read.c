// The consumer looks at the price before the feed has set it, and exits with what it saw.
#include <pthread.h>

static int price;

static void *feed(void *argument) {
    (void)argument;
    price = 7;
    return NULL;
}

static int paid;

static void *buyer(void *argument) {
    (void)argument;
    paid = price;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, feed, NULL);
    pthread_create(&two, NULL, buyer, NULL);
    pthread_join(two, NULL);
    pthread_join(one, NULL);
    return paid == 7 ? 0 : 3;
}
