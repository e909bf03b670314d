/* cobet/test_and_set, buggy.
 * Wrong: the window is tested without the lock and not tested again under it; both threads
 * discard it.
 * Origin: Linux ext3 reservation window, misused test and test-and-set (COBET section 4.1), as
 * a user-mode model */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t rsv_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int window_end = 1;
static int discarded;

static void *discard_reservation(void *arg)
{
    if (atomic_load(&window_end) != 0) {
        pthread_mutex_lock(&rsv_lock);
        discarded++;
        atomic_store(&window_end, 0);
        pthread_mutex_unlock(&rsv_lock);
    }
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, discard_reservation, NULL);
    pthread_create(&t2, NULL, discard_reservation, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    assert(discarded == 1);
    return 0;
}
