// Loses an update early and then goes on for ever.
#include <assert.h>
#include <pthread.h>

static long balance;
static volatile long rounds;

static void *deposit(void *a) { balance = balance + 1; return a; }

int main(int count, char **arguments) {
    pthread_t one, two;
    (void)arguments;
    pthread_create(&one, 0, deposit, 0);
    if (count > 1) pthread_join(one, 0);
    pthread_create(&two, 0, deposit, 0);
    if (count == 1) pthread_join(one, 0);
    pthread_join(two, 0);
    assert(balance == 2);
    for (;;) rounds++;
}
