/* cherokee/time_string, buggy.
 * Wrong: the cached time and its text are refreshed one after the other; a reply in between
 * carries an old text for the new time.
 * Origin: Cherokee-0.99.48, output that depends on the interleaving (ConSeq chapter 4.3.7, new
 * bug) */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile long now = 59;
static char text[16] = "59";

static void *refresh(void *arg)
{
    now = 60;
    snprintf(text, sizeof text, "%ld", now);
    return arg;
}

static void *reply(void *arg)
{
    long time_of_reply, time_in_header;

    time_of_reply = now;
    time_in_header = strtol(text, NULL, 10);
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
