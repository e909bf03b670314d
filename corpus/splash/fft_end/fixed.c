/* splash/fft_end, fixed.
 * Wrong: the macro that should wait for the end of the workers waits only until the work is
 * counted as done; the main thread may print the times before the worker has stored End.
 * Fix: the macro waits for the worker itself.
 * Origin: FFT of SPLASH-2, End read before it is set (CTrigger Table 2; ConMem Table 4.3;
 * ConAir Fig. 5.8: order and atomicity violation) */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t end_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t end_cond = PTHREAD_COND_INITIALIZER;
static int finished;

#define WORK_DONE()                          \
    do {                                     \
        pthread_mutex_lock(&end_lock);       \
        finished++;                          \
        pthread_mutex_unlock(&end_lock);     \
    } while (0)
#define WAIT_FOR_END(t)                              \
    do {                                             \
        pthread_mutex_lock(&end_lock);               \
        while (finished < 1)                         \
            pthread_cond_wait(&end_cond, &end_lock); \
        pthread_mutex_unlock(&end_lock);             \
        pthread_join(t, NULL);                       \
    } while (0)

static volatile long Init = 1000, End;
static volatile double result[4];

static void *slave_start(void *arg)
{
    for (int i = 0; i < 4; i++)
        result[i] = 0.5 * i;
    WORK_DONE();
    End = Init + 250;
    pthread_cond_signal(&end_cond);
    return arg;
}

int main(void)
{
    pthread_t t;
    long end, total;

    pthread_create(&t, NULL, slave_start, NULL);
    WAIT_FOR_END(t);
    end = End;
    total = End - Init;
    printf("End at %ld, total %ld\n", end, total);
    return end == 1250 && total == 250 ? 0 : 1;
}
