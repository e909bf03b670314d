/* cherokee/time_string, fixed.
 * Wrong: the cached time and its text are refreshed one after the other; a reply in between
 * carries an old text for the new time.
 * Fix: refresh and reply hold the cache's lock.
 * Origin: Cherokee-0.99.48, output that depends on the interleaving (ConSeq chapter 4.3.7, new
 * bug) */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile long now = 59;
static char text[16] = "59";
static pthread_mutex_t time_lock = PTHREAD_MUTEX_INITIALIZER;

static void *refresh(void *arg)
{
    pthread_mutex_lock(&time_lock);
    now = 60;
    snprintf(text, sizeof text, "%ld", now);
    pthread_mutex_unlock(&time_lock);
    return arg;
}

static void *reply(void *arg)
{
    long time_of_reply, time_in_header;

    pthread_mutex_lock(&time_lock);
    time_of_reply = now;
    time_in_header = strtol(text, NULL, 10);
    pthread_mutex_unlock(&time_lock);
    assert(time_in_header == time_of_reply);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, refresh, NULL);
    pthread_create(&t2, NULL, reply, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
