#include <assert.h>
#include <pthread.h>

static int visits;

static void *visit(void *unused)
{
    int seen = visits; /* another visitor may come between these two lines */
    visits = seen + 1;
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, visit, NULL);
    pthread_create(&two, NULL, visit, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert(visits == 2);
    return 0;
}
