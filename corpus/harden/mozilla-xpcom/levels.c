/* Mozilla XPCOM in another spelling: the pointer is handed down three calls, one of which chooses what to ask for and one
   of which looks at an argument of its own before. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREAD_DETACHED 4

enum question { ASK_ID, ASK_STATE };
struct thread_data { int id, state; };
static struct thread_data *mThd;

__attribute__((noinline)) static int state_bits(const struct thread_data *thd, int mask)
{
    return thd->state & mask; /* SITE */
}

__attribute__((noinline)) static int get_state(const struct thread_data *thd, int mask)
{
    if (mask == 0)
        return 0;
    return state_bits(thd, mask);
}

__attribute__((noinline)) static int answer(const struct thread_data *thd, enum question question)
{
    switch (question) {
    case ASK_ID:
        return thd->id;
    default:
        return get_state(thd, THREAD_DETACHED);
    }
}

static int get(void)
{
    return answer(__atomic_load_n(&mThd, __ATOMIC_ACQUIRE), ASK_STATE);
}

static void *init_thd(void *unused)
{
    (void)unused;
    usleep(20000);
    struct thread_data *thd = malloc(sizeof *thd);
    if (thd == NULL)
        abort();
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
