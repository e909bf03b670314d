/* Threads push to a lock-free stack, which main empties when they are done. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct node {
    struct node *next;
    int value;
};
static _Atomic(struct node *) top;
static void *push(void *arg)
{
    for (int i = 1; i <= 3; i++) {
        struct node *n = malloc(sizeof *n);
        n->value = i;
        n->next = atomic_load(&top);
        while (!atomic_compare_exchange_weak(&top, &n->next, n))
            ;
    }
    return arg;
}
int main(void)
{
    pthread_t t[3];
    int sum = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, push, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    for (struct node *n = top; n;) {
        struct node *next = n->next;
        sum += n->value;
        free(n);
        n = next;
    }
    assert(sum == 18);
    return 0;
}
