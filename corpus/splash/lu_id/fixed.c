/* splash/lu_id, fixed.
 * Wrong: LOCK and UNLOCK expand to nothing, so two processes can draw the same number; one
 * block is factored twice, one not at all.
 * Fix: the macros lock.
 * Origin: LU of SPLASH-2, platform macro that provides no atomicity (CTrigger Table 2: only
 * the symptom is given, the accesses are ours) */
#include <pthread.h>

#define P 3
#define LOCK(l) pthread_mutex_lock(l)
#define UNLOCK(l) pthread_mutex_unlock(l)

static struct {
    pthread_mutex_t idlock;
    volatile int id;
} Global = {.idlock = PTHREAD_MUTEX_INITIALIZER};
static int factored[P];

static void *slave_start(void *arg)
{
    int MyNum;

    LOCK(&Global.idlock);
    MyNum = Global.id;
    Global.id = MyNum + 1;
    UNLOCK(&Global.idlock);

    factored[MyNum]++;
    return arg;
}

int main(void)
{
    pthread_t t[P];
    int wrong = 0;

    for (int i = 0; i < P; i++)
        pthread_create(&t[i], NULL, slave_start, NULL);
    for (int i = 0; i < P; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < P; i++)
        wrong |= factored[i] != 1;
    return wrong;
}
