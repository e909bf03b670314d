#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int balance = 100;
static void *deposit(void *a) {
    int old = atomic_load(&balance);
    atomic_store(&balance, old + 50);
    return a;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, deposit, 0);
    pthread_create(&b, 0, deposit, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%d\n", atomic_load(&balance));
    return 0;
}
