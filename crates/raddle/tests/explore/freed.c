#include <pthread.h>
#include <stdlib.h>
struct entry { int users, value; };
static struct entry *shared;
static void *evict(void *a) {
    struct entry *old = shared;
    shared = 0;
    free(old);
    return a;
}
static void *use(void *a) {
    struct entry *mine = shared;
    if (mine)
        *(int *)a = mine->value;
    return a;
}
int main(void) {
    static int result;
    pthread_t e, u;
    shared = malloc(sizeof *shared);
    shared->value = 7;
    pthread_create(&e, 0, evict, 0);
    pthread_create(&u, 0, use, &result);
    pthread_join(e, 0);
    pthread_join(u, 0);
    return 0;
}
