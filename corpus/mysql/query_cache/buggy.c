/* mysql/query_cache, buggy.
 * Wrong: SELECT copies the table's state, INSERT appends and invalidates the cache, then
 * SELECT stores its old answer in the cache; only a later SELECT gets a wrong result. No data
 * race.
 * Origin: MySQL, stale entry in the query cache, latent bug (PIKE Fig. 5.5) */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rows = 3;
static int cached, cached_rows;

static int select_count(void)
{
    int answer;

    pthread_mutex_lock(&lock);
    if (cached) {
        answer = cached_rows;
        pthread_mutex_unlock(&lock);
        return answer;
    }
    answer = rows;
    pthread_mutex_unlock(&lock);

    pthread_mutex_lock(&lock);
    cached_rows = answer;
    cached = 1;
    pthread_mutex_unlock(&lock);
    return answer;
}

static void *reader(void *arg)
{
    int answer = select_count();

    assert(answer == 3 || answer == 6);
    return arg;
}

static void *insert(void *arg)
{
    pthread_mutex_lock(&lock);
    rows += 3;
    cached = 0;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, reader, NULL);
    pthread_create(&t2, NULL, insert, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    assert(select_count() == 6);
    return 0;
}
