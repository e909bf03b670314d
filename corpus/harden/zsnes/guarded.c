/* ZSNES in another spelling: the flag is read under its lock by a helper, so that the critical section lies between the
   wrong read and the assertion. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t video = PTHREAD_MUTEX_INITIALIZER;
static int video_ready, frames, started;

static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static int is_ready(void)
{
    pthread_mutex_lock(&video);
    int answer = video_ready;
    pthread_mutex_unlock(&video);
    return answer;
}

static void *emulate(void *unused)
{
    (void)unused;
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    assert(is_ready()); /* SITE */
    frames++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, emulate, NULL);
    wait_for(&started);
    usleep(3000);
    pthread_mutex_lock(&video);
    video_ready = 1;
    pthread_mutex_unlock(&video);
    pthread_join(thread, NULL);
    printf("frames %d\n", frames);
    return 0;
}
