/* A string buffer whose calls each take its lock. `append_buffer` asks another buffer for its length in one call
 * and copies so many characters in the next; the other one may have been cut in between. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    pthread_mutex_t lock;
    char *chars;
    int used, room;
};

static struct buffer *new_buffer(const char *text)
{
    struct buffer *b = malloc(sizeof *b);

    pthread_mutex_init(&b->lock, NULL);
    b->used = (int)strlen(text);
    b->room = b->used + 16;
    b->chars = malloc((size_t)b->room);
    memcpy(b->chars, text, (size_t)b->used);
    return b;
}

static int length(struct buffer *b)
{
    pthread_mutex_lock(&b->lock);
    int used = b->used;
    pthread_mutex_unlock(&b->lock);
    return used;
}

static void get_chars(struct buffer *b, int from, int to, char *out)
{
    pthread_mutex_lock(&b->lock);
    assert(from >= 0 && from <= to && to <= b->used);
    memcpy(out, b->chars + from, (size_t)(to - from));
    pthread_mutex_unlock(&b->lock);
}

static void make_room(struct buffer *b, int more)
{
    if (b->used + more > b->room) {
        b->room = 2 * b->room + more;
        b->chars = realloc(b->chars, (size_t)b->room);
    }
}

static void append_text(struct buffer *b, const char *text)
{
    int more = (int)strlen(text);

    pthread_mutex_lock(&b->lock);
    make_room(b, more);
    memcpy(b->chars + b->used, text, (size_t)more);
    b->used += more;
    pthread_mutex_unlock(&b->lock);
}

static void append_buffer(struct buffer *b, struct buffer *other)
{
    pthread_mutex_lock(&b->lock);
    int more = length(other);
    make_room(b, more);
    get_chars(other, 0, more, b->chars + b->used);
    b->used += more;
    pthread_mutex_unlock(&b->lock);
}

static void erase(struct buffer *b, int from, int to)
{
    pthread_mutex_lock(&b->lock);
    if (to > b->used)
        to = b->used;
    memmove(b->chars + from, b->chars + to, (size_t)(b->used - to));
    b->used -= to - from;
    pthread_mutex_unlock(&b->lock);
}

static struct buffer *shared;

static void *changer(void *arg)
{
    erase(shared, 0, 3);
    append_text(shared, "abc");
    return arg;
}

int main(void)
{
    pthread_t t;
    struct buffer *own = new_buffer("");

    shared = new_buffer("abc");
    pthread_create(&t, NULL, changer, NULL);
    append_buffer(own, shared);
    pthread_join(t, NULL);
    return 0;
}
