/* Memory is unmapped while somebody may still read it; the order of the two decides. */
#include <pthread.h>
#include <sys/mman.h>

#define SIZE 4096

static volatile int *page;
static volatile int seen;

static void *reader(void *arg)
{
    seen = *page;
    return arg;
}

static void *owner(void *arg)
{
    munmap((void *)page, SIZE);
    return arg;
}

int main(void)
{
    pthread_t t[2];

    page = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_create(&t[0], NULL, reader, NULL);
    pthread_create(&t[1], NULL, owner, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
