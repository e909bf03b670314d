/* hard/setters_100, buggy.
 * Wrong: each setter stores a and b without a lock; the checker reads both in one access and
 * fails only between the two stores of whichever setter runs first, because the others store
 * the same values.
 * Origin: hard: a checker that fails only between the two stores of the first of 100 setters
 * (the reorder benchmarks of the systematic-testing literature) */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#define SETTERS 100

static volatile union {
    struct {
        int32_t a, b;
    } half;
    int64_t both;
} shared;

static void *setter(void *arg)
{
    shared.half.a = 1;
    shared.half.b = 1;
    return arg;
}

static void *checker(void *arg)
{
    int64_t seen;

    seen = shared.both;
    assert(seen == 0 || seen == ((int64_t)1 << 32 | 1));
    return arg;
}

int main(void)
{
    pthread_t t[SETTERS + 1];

    for (int i = 0; i < SETTERS; i++)
        pthread_create(&t[i], NULL, setter, NULL);
    pthread_create(&t[SETTERS], NULL, checker, NULL);
    for (int i = 0; i <= SETTERS; i++)
        pthread_join(t[i], NULL);
    return 0;
}
