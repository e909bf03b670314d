/* splash/fft_end, buggy.
 * Wrong: the macro that should wait for the end of the workers waits only for the last
 * barrier; the main thread may print the times before the worker has stored End.
 * Origin: FFT of SPLASH-2, End read before it is set (CTrigger Table 2; ConMem Table 4.3;
 * ConAir Fig. 5.8: order and atomicity violation) */
#include <pthread.h>
#include <stdio.h>

#define WAIT_FOR_END(t) ((void)0)

static pthread_barrier_t all_done;
static volatile long Init = 1000, End;
static volatile double result[4];

static void *slave_start(void *arg)
{
    for (int i = 0; i < 4; i++)
        result[i] = 0.5 * i;
    pthread_barrier_wait(&all_done);
    End = Init + 250;
    return arg;
}

int main(void)
{
    pthread_t t;
    long end, total;

    pthread_barrier_init(&all_done, NULL, 2);
    pthread_create(&t, NULL, slave_start, NULL);
    pthread_barrier_wait(&all_done);
    WAIT_FOR_END(t);
    end = End;
    total = End - Init;
    printf("End at %ld, total %ld\n", end, total);
    pthread_join(t, NULL);
    return end == 1250 && total == 250 ? 0 : 1;
}
