// A reader goes through a list of two again and again, until it has seen the third entry or has lost its patience.
#include <assert.h>
#include <pthread.h>
struct entry { struct entry *volatile next; };
static struct entry third, second, first = {&second};
static volatile int begun, rounds;
static void *adder(void *a) {
    begun = 1;
    second.next = &third;
    return a;
}
static int length(void) {
    int count = 0;
    for (struct entry *at = &first; at; at = at->next)
        count++;
    return count;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, adder, 0);
    while (!begun)
        ;
    while (length() < 3 && rounds < 6)
        rounds++;
    assert(rounds < 4);
    pthread_join(thread, 0);
    return 0;
}
