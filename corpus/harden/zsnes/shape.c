/* ZSNES in another spelling: the assertion is a function of the program's own, known by its name and by the end of the
   program behind it, and the flag is one of a table. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SOUND, VIDEO, INPUT, DEVICES };
static int ready[DEVICES] = {1, 0, 1};
static int frames, started;

__attribute__((noinline, noreturn)) static void emulatorAssertFailed(const char *what, int line)
{
    fprintf(stderr, "line %d: %s\n", line, what);
    abort();
}

#define EXPECT(condition) do { if (!(condition)) emulatorAssertFailed(#condition, __LINE__); } while (0)

static void wait_for(int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void *emulate(void *unused)
{
    (void)unused;
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    int count = 0;
    for (int device = 0; device < DEVICES; device++)
        count += __atomic_load_n(&ready[device], __ATOMIC_ACQUIRE);
    EXPECT(count == DEVICES); /* SITE */
    frames++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, emulate, NULL);
    wait_for(&started);
    usleep(3000);
    __atomic_store_n(&ready[VIDEO], 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf("frames %d\n", frames);
    return 0;
}
