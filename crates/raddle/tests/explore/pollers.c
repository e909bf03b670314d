/* Two threads look at a flag under a lock again and again; a third needs the lock once to set it. Nothing is wrong: every
   fair order ends. */
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int flag;
static void *poll(void *a) {
    for (int seen = 0; !seen;) {
        pthread_mutex_lock(&lock);
        seen = flag;
        for (volatile int i = 0; i < 60; i++)
            ;
        pthread_mutex_unlock(&lock);
    }
    return a;
}
static void *set(void *a) {
    pthread_mutex_lock(&lock);
    flag = 1;
    pthread_mutex_unlock(&lock);
    return a;
}
int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], 0, poll, 0);
    pthread_create(&threads[1], 0, poll, 0);
    pthread_create(&threads[2], 0, set, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return 0;
}
