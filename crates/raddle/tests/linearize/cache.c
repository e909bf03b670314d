/* A table with a cache of answers. Buggy: a reader puts its answer into the cache after a writer has emptied it. Careful:
 * a reader does not store its answer if somebody wrote meanwhile. */
#include <pthread.h>

#include "raddle.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER, cache_lock = PTHREAD_MUTEX_INITIALIZER;
static long table_sum = 1, cached, has_cached, writes_done;

static long sum(void)
{
    long before = __atomic_load_n(&writes_done, __ATOMIC_ACQUIRE);
    pthread_mutex_lock(&cache_lock);
    long answer = cached, is_there = has_cached;
    pthread_mutex_unlock(&cache_lock);
    if (is_there)
        return answer;
    pthread_mutex_lock(&table_lock);
    answer = table_sum;
#if defined(BUGGY) || defined(CAREFUL)
    pthread_mutex_unlock(&table_lock);
#endif
    pthread_mutex_lock(&cache_lock);
#ifdef CAREFUL
    if (before == writes_done)
#endif
    {
        cached = answer;
        has_cached = 1;
    }
    pthread_mutex_unlock(&cache_lock);
#if !defined(BUGGY) && !defined(CAREFUL)
    pthread_mutex_unlock(&table_lock);
#endif
    return answer;
}

static void insert(long value)
{
    pthread_mutex_lock(&table_lock);
    table_sum += value;
    pthread_mutex_lock(&cache_lock);
    has_cached = 0;
    __atomic_fetch_add(&writes_done, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&cache_lock);
    pthread_mutex_unlock(&table_lock);
}

static void *reads(void *unused)
{
    raddle_begin("sum");
    raddle_result(sum());
    raddle_end_operation();
    return unused;
}

static void *writes(void *unused)
{
    raddle_begin("insert");
    raddle_argument(10);
    insert(10);
    raddle_end_operation();
    return unused;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, reads, 0);
    pthread_create(&b, 0, writes, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
#ifdef CACHE_CONTENT
    raddle_probe("cache");
    raddle_result(has_cached);
    raddle_end_operation();
#endif
    raddle_probe("sum");
    raddle_result(sum());
    raddle_end_operation();
    return 0;
}
