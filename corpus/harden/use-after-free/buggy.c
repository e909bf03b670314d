/* A pointer is read while it is valid and used when its memory is gone: no check on the pointer's value can see it.
   Must fail as before. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int *shared;
static volatile int gone;

static void *take_away(void *unused)
{
    (void)unused;
    usleep(1000);
    munmap(shared, 4096);
    gone = 1;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    puts("before");
    fflush(stdout);
    pthread_create(&thread, NULL, take_away, NULL);
    int *mine = shared;
    for (int i = 0; i < 1000000000 && !gone; i++)
        ;
    printf("value %d\n", *mine);
    pthread_join(thread, NULL);
    return 0;
}
