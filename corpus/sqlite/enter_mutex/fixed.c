/* sqlite/enter_mutex, fixed.
 * Wrong: enter waits for the main lock while it holds the auxiliary lock that leave needs.
 * Fix: the auxiliary lock is released before the main lock is waited for.
 * Origin: SQLite, deadlock of a home-made recursive mutex (ConAir Table 5.2: only the symptom
 * is given, the accesses are ours) */
#include <pthread.h>

static pthread_mutex_t mutex_main = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mutex_aux = PTHREAD_MUTEX_INITIALIZER;
static pthread_t owner;
static int owner_valid, depth;
static int statements;

static void enter(void)
{
    pthread_mutex_lock(&mutex_aux);
    if (!owner_valid || !pthread_equal(owner, pthread_self())) {
        pthread_mutex_unlock(&mutex_aux);
        pthread_mutex_lock(&mutex_main);
        pthread_mutex_lock(&mutex_aux);
        owner = pthread_self();
        owner_valid = 1;
    }
    depth++;
    pthread_mutex_unlock(&mutex_aux);
}

static void leave(void)
{
    pthread_mutex_lock(&mutex_aux);
    if (--depth == 0) {
        owner_valid = 0;
        pthread_mutex_unlock(&mutex_main);
    }
    pthread_mutex_unlock(&mutex_aux);
}

static void *step(void *arg)
{
    enter();
    enter();
    statements++;
    leave();
    leave();
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, step, NULL);
    pthread_create(&t2, NULL, step, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return statements == 2 ? 0 : 1;
}
