#include <pthread.h>
#include <unistd.h>

/* Only the kernel reads what the other thread writes, so that no instruction meets another's access. */
static volatile char pair[3] = "aa\n";
static void *change(void *a) {
    pair[0] = 'b';
    pair[1] = 'b';
    return a;
}
static void *show(void *a) {
    if (write(1, (const void *)pair, 3) != 3)
        _exit(2);
    return a;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, change, 0);
    pthread_create(&two, 0, show, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
