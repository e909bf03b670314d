/* Marks in the wrong place: NESTED, EARLY, ONE, CRASH, or none at all. */
#include <pthread.h>

#include "raddle.h"

static void *client(void *unused)
{
#if defined(NESTED)
    raddle_begin("outer");
    raddle_begin("inner");
    raddle_end_operation();
#elif defined(EARLY)
    raddle_begin("slow");
    raddle_probe("state");
    raddle_end_operation();
#elif defined(CRASH)
    raddle_begin("crash");
    *(volatile int *)0 = 0;
    raddle_end_operation();
#endif
    return unused;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, client, 0);
    pthread_create(&b, 0, client, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
#ifdef ONE
    raddle_begin("alone");
    raddle_end_operation();
#endif
    return 0;
}
