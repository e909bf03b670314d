// What the threads share is a local variable of main, which they get as their argument.
#include <assert.h>
#include <pthread.h>

struct account {
    long balance;
    long deposits;
};

static void *deposit(void *argument) {
    struct account *account = argument;
    long old = account->balance;
    account->balance = old + 50;
    return NULL;
}

int main(void) {
    struct account account = {.balance = 100};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, deposit, &account);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert(account.balance == 200);
    return 0;
}
