/* Mozilla XPCOM: Get reads mThd before InitThd has assigned it and passes it to GetState. Order violation,
   segmentation fault one call below. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREAD_DETACHED 4

struct thread_data { int id, state; };
static struct thread_data *mThd;

__attribute__((noinline)) static int get_state(struct thread_data *thd)
{
    return thd->state & THREAD_DETACHED; /* SITE */
}

static int get(void)
{
    return get_state(mThd);
}

static void *init_thd(void *unused)
{
    (void)unused;
    usleep(3000);
    struct thread_data *thd = malloc(sizeof *thd);
    thd->id = 1;
    thd->state = 7;
    __atomic_store_n(&mThd, thd, __ATOMIC_RELEASE);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, init_thd, NULL);
    int state = get();
    printf("detached %d\n", state);
    pthread_join(thread, NULL);
    free(mThd);
    return 0;
}
