/* cobet/thread_creation, fixed.
 * Wrong: the parent starts the thread and fills in the rest of its argument afterwards; the
 * child may read it before.
 * Fix: the argument is complete before the thread starts.
 * Origin: Linux, unsynchronised communication at thread creation (COBET section 4.2), as a
 * user-mode model */
#include <assert.h>
#include <pthread.h>

static struct {
    volatile int device, ready;
} argument;

static void *child(void *arg)
{
    assert(argument.ready == 1);
    return arg;
}

int main(void)
{
    pthread_t t;

    argument.device = 3;
    argument.ready = 1;
    pthread_create(&t, NULL, child, NULL);
    pthread_join(t, NULL);
    return 0;
}
