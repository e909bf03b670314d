// The total is printed before the second adder has come.
#include <pthread.h>
#include <stdio.h>

static int total;
static int done;

static void *add(void *argument) {
    total += (int)(long)argument;
    done++;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, add, (void *)20);
    pthread_create(&two, NULL, add, (void *)22);
    pthread_join(one, NULL);
    printf("total %d\n", total);
    pthread_join(two, NULL);
    return 0;
}
