/* ZSNES: the emulation thread asserts that video has been initialised before the main thread has done so. Order
   violation, assertion. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int video_ready, frames, started;

/* Forces the order of the failure. */
static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void *emulate(void *unused)
{
    (void)unused;
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    assert(__atomic_load_n(&video_ready, __ATOMIC_ACQUIRE) == 1); /* SITE */
    frames++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, emulate, NULL);
    wait_for(&started);
    usleep(3000);
    __atomic_store_n(&video_ready, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf("frames %d\n", frames);
    return 0;
}
