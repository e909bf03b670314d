#include <pthread.h>
#include <stdlib.h>

#define SLOTS 4
static int used = SLOTS - 1;
static int *slots;

static void *add(void *unused)
{
    if (used < SLOTS) {
        slots[used] = 1; /* the last slot may have been taken since the test */
        used++;
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    slots = calloc(SLOTS, sizeof *slots);
    pthread_create(&thread, NULL, add, NULL);
    add(NULL);
    pthread_join(thread, NULL);
    free(slots);
    return 0;
}
