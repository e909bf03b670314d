/* Four kernels of vulnerabilities. VARIANT 1: a length is fetched twice; 2: a reference is taken after the table's lock
 * has been given up; 3: a pointer is checked, and cleared before it is used; 4: a queue is looked for under one lock,
 * used under another and freed under a third. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifndef VARIANT
#define VARIANT 1
#endif

#if VARIANT == 1
struct message {
    volatile unsigned length;
    char text[64];
};
static struct message *message;

static void *sender(void *arg)
{
    message->length = 8;
    message->length = 64;
    message->length = 16;
    return arg;
}

static void *receiver(void *arg)
{
    for (int i = 0; i < 2; i++) {
        unsigned first = message->length;
        char *copy = malloc(first);
        unsigned second = message->length;
        if (second > first)
            abort();
        memcpy(copy, message->text, second);
        free(copy);
    }
    return arg;
}

static void set_up(void)
{
    message = calloc(1, sizeof *message);
    message->length = 16;
}
#elif VARIANT == 2
struct object {
    pthread_mutex_t lock;
    int references, value;
};
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *table[4];

static void put(struct object *o)
{
    pthread_mutex_lock(&o->lock);
    int left = --o->references;
    pthread_mutex_unlock(&o->lock);
    if (left == 0)
        free(o);
}

static void *receiver(void *arg)
{
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&table_lock);
        struct object *o = table[i];
        pthread_mutex_unlock(&table_lock);
        if (!o)
            continue;
        pthread_mutex_lock(&o->lock);
        o->references++;
        pthread_mutex_unlock(&o->lock);
        o->value++;
        put(o);
    }
    return arg;
}

static void *sender(void *arg)
{
    for (int i = 3; i >= 0; i--) {
        pthread_mutex_lock(&table_lock);
        struct object *o = table[i];
        table[i] = NULL;
        pthread_mutex_unlock(&table_lock);
        put(o);
    }
    return arg;
}

static void set_up(void)
{
    for (int i = 0; i < 4; i++) {
        table[i] = calloc(1, sizeof **table);
        pthread_mutex_init(&table[i]->lock, NULL);
        table[i]->references = 1;
    }
}
#elif VARIANT == 3
static int *volatile handler;

static void *receiver(void *arg)
{
    if (handler)
        *handler = 5;
    return arg;
}

static void *sender(void *arg)
{
    handler = NULL;
    return arg;
}

static void set_up(void)
{
    handler = malloc(sizeof *handler);
}
#else
struct queue {
    pthread_mutex_t lock;
    int cells[8];
    volatile int used;
};
static struct queue *volatile queue;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_open = 1;

static void *receiver(void *arg)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&list_lock);
        struct queue *q = is_open ? queue : NULL;
        pthread_mutex_unlock(&list_lock);
        if (!q)
            break;
        pthread_mutex_lock(&q->lock);
        q->cells[q->used] = i;
        q->used = q->used + 1;
        pthread_mutex_unlock(&q->lock);
    }
    return arg;
}

static void *sender(void *arg)
{
    pthread_mutex_lock(&device_lock);
    for (int i = 0; i < 2; i++) {
        struct queue *q = queue;
        pthread_mutex_lock(&q->lock);
        q->used = 0;
        pthread_mutex_unlock(&q->lock);
    }
    pthread_mutex_lock(&list_lock);
    is_open = 0;
    pthread_mutex_unlock(&list_lock);
    free(queue);
    pthread_mutex_unlock(&device_lock);
    return arg;
}

static void set_up(void)
{
    queue = calloc(1, sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
}
#endif

int main(void)
{
    pthread_t t[2];

    set_up();
    pthread_create(&t[0], NULL, receiver, NULL);
    pthread_create(&t[1], NULL, sender, NULL);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    return 0;
}
