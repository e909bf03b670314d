/* A parallel quicksort over a pool of workers, each with a state, a lock and a condition of its own. Who has split its
 * part hands one half to an idle worker; the last to become idle sends all others home. Wrong: a worker counts itself
 * idle first and sets its state then, so that it may forget that it was sent home in between, and waits for ever. */
#include <pthread.h>
#include <stdlib.h>

#define WORKERS 3
#define LENGTH 24
#define SMALL 4

enum state { idle, work, leave };

struct worker {
    pthread_mutex_t lock;
    pthread_cond_t news;
    enum state state;
    int *from;
    int count;
};

static struct worker pool[WORKERS];
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static int idles = WORKERS;

/* A worker that is idle, with its lock held; none if all are busy. */
static struct worker *hire(void)
{
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &pool[i];
        if (pthread_mutex_trylock(&w->lock) != 0)
            continue;
        if (w->state == idle) {
            w->state = work;
            pthread_mutex_lock(&pool_lock);
            idles--;
            pthread_mutex_unlock(&pool_lock);
            return w;
        }
        pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

static void insertion_sort(int *a, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && a[j - 1] > a[j]; j--) {
            int x = a[j];
            a[j] = a[j - 1];
            a[j - 1] = x;
        }
}

static void sort(int *a, int n)
{
    while (n > SMALL) {
        int pivot = a[n / 2], i = 0, j = n - 1;
        while (i <= j) {
            while (a[i] < pivot)
                i++;
            while (a[j] > pivot)
                j--;
            if (i <= j) {
                int x = a[i];
                a[i++] = a[j];
                a[j--] = x;
            }
        }
        struct worker *w = j + 1 > SMALL ? hire() : NULL;
        if (w) {
            w->from = a;
            w->count = j + 1;
            pthread_cond_signal(&w->news);
            pthread_mutex_unlock(&w->lock);
        } else {
            sort(a, j + 1);
        }
        a += i;
        n -= i;
    }
    insertion_sort(a, n);
}

static void send_home(struct worker *except)
{
    for (int i = 0; i < WORKERS; i++) {
        if (&pool[i] == except)
            continue;
        pthread_mutex_lock(&pool[i].lock);
        pool[i].state = leave;
        pthread_cond_signal(&pool[i].news);
        pthread_mutex_unlock(&pool[i].lock);
    }
}

static void *worker(void *arg)
{
    struct worker *w = arg;

    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (w->state == idle)
            pthread_cond_wait(&w->news, &w->lock);
        enum state state = w->state;
        pthread_mutex_unlock(&w->lock);
        if (state == leave)
            return arg;
        sort(w->from, w->count);

        pthread_mutex_lock(&pool_lock);
        int is_last = ++idles == WORKERS;
        pthread_mutex_unlock(&pool_lock);
        if (is_last) {
            send_home(w);
            return arg;
        }
        pthread_mutex_lock(&w->lock);
        w->state = idle;
        pthread_mutex_unlock(&w->lock);
    }
}

int main(void)
{
    pthread_t t[WORKERS];
    static int numbers[LENGTH];
    unsigned x = 12345;

    for (int i = 0; i < LENGTH; i++) {
        x = x * 1103515245 + 12345;
        numbers[i] = (int)(x >> 16) % 1000;
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_mutex_init(&pool[i].lock, NULL);
        pthread_cond_init(&pool[i].news, NULL);
        pthread_create(&t[i], NULL, worker, &pool[i]);
    }
    struct worker *first = hire();
    first->from = numbers;
    first->count = LENGTH;
    pthread_cond_signal(&first->news);
    pthread_mutex_unlock(&first->lock);

    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    for (int i = 1; i < LENGTH; i++)
        if (numbers[i - 1] > numbers[i])
            abort();
    return 0;
}
