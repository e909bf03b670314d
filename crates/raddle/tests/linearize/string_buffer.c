/* A string buffer as java.lang.StringBuffer was: append() asks the other one for its length, then for its characters.
 * Buggy: the other one may have become shorter in between. */
#include <pthread.h>
#include <string.h>

#include "raddle.h"

struct buffer {
    pthread_mutex_t lock;
    char text[64];
    unsigned length;
};

static struct buffer one = {PTHREAD_MUTEX_INITIALIZER, "abc", 3}, two = {PTHREAD_MUTEX_INITIALIZER, "xyz", 3};

static unsigned length(struct buffer *of)
{
    pthread_mutex_lock(&of->lock);
    unsigned length = of->length;
    pthread_mutex_unlock(&of->lock);
    return length;
}

static int characters(struct buffer *of, unsigned count, char *to)
{
    pthread_mutex_lock(&of->lock);
    int fits = count <= of->length;
    if (fits)
        memcpy(to, of->text, count);
    pthread_mutex_unlock(&of->lock);
    return fits;
}

static int append(struct buffer *to, struct buffer *from)
{
    char copy[64];
    pthread_mutex_lock(&to->lock);
#ifdef BUGGY
    unsigned count = length(from);
    int fits = characters(from, count, copy);
#else
    pthread_mutex_lock(&from->lock);
    unsigned count = from->length;
    int fits = 1;
    memcpy(copy, from->text, count);
    pthread_mutex_unlock(&from->lock);
#endif
    if (fits) {
        memcpy(to->text + to->length, copy, count);
        to->length += count;
    }
    pthread_mutex_unlock(&to->lock);
    return fits;
}

static void *appends(void *unused)
{
    raddle_begin("append");
    if (append(&one, &two))
        raddle_result_text("ok");
    else
        raddle_result_error("string index out of range");
    raddle_end_operation();
    return unused;
}

static void *shortens(void *unused)
{
    raddle_begin("set_length");
    raddle_argument(1);
    pthread_mutex_lock(&two.lock);
    two.length = 1;
    pthread_mutex_unlock(&two.lock);
    raddle_end_operation();
    return unused;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, appends, 0);
    pthread_create(&b, 0, shortens, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    raddle_probe("text");
    raddle_result_bytes(one.text, one.length);
    raddle_end_operation();
    return 0;
}
