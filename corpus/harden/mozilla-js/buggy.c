/* Mozilla's JavaScript engine: the runtime lock and a title's lock are taken in both orders. Deadlock in which both
   threads can be re-executed. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t runtime_lock = PTHREAD_MUTEX_INITIALIZER, title_lock = PTHREAD_MUTEX_INITIALIZER;
static int requests, titles;
static volatile int claiming, ending, slow;

/* Forces the order of the failure without a write: what lies between the locks must stay repeatable. */
static void hold_on(volatile int *other)
{
    for (int i = 0; i < 100000000 && !*other; i++)
        (void)slow;
    for (int i = 0; i < 1000000; i++)
        (void)slow;
}

static void *claim_title(void *unused)
{
    (void)unused;
    claiming = 1;
    pthread_mutex_lock(&title_lock);
    hold_on(&ending);
    pthread_mutex_lock(&runtime_lock);
    titles++;
    pthread_mutex_unlock(&runtime_lock);
    pthread_mutex_unlock(&title_lock);
    return NULL;
}

static void end_request(void)
{
    ending = 1;
    pthread_mutex_lock(&runtime_lock);
    hold_on(&claiming);
    pthread_mutex_lock(&title_lock); /* SITE */
    requests++;
    pthread_mutex_unlock(&title_lock);
    pthread_mutex_unlock(&runtime_lock);
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, claim_title, NULL);
    end_request();
    pthread_join(thread, NULL);
    printf("requests %d titles %d\n", requests, titles);
    return 0;
}
