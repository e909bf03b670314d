/* An allocator with blocks of eight bytes: half of all strings begin in the middle of a line of sixteen bytes, which the
   C library reads as a whole. With an argument, a string is used after it was freed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static _Alignas(64) char memory[1 << 20];
static char *next = memory;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *malloc(size_t size) {
    pthread_mutex_lock(&lock);
    char *block = next;
    size_t rounded = (size + 7) & ~(size_t)7;
    next += rounded ? rounded : 8;
    pthread_mutex_unlock(&lock);
    return block;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *old, size_t size) {
    void *made = malloc(size);
    return old ? memcpy(made, old, size) : made;
}

static int is_wrong;
static _Thread_local volatile size_t sink;

static char *in_the_middle(void) {
    char *block = malloc(8);
    while ((unsigned long)block % 16 != 8)
        block = malloc(8);
    return block;
}

static void *work(void *unused) {
    for (int round = 0; round < 4; round++) {
        char *before = malloc(8);
        while ((unsigned long)before % 16 != 0)
            before = malloc(8);
        char *text = malloc(8);
        strcpy(before, "before");
        strcpy(text, "string");
        char *other = in_the_middle();
        strcpy(other, "String");
        free(before);
        sink += strcmp(text, "string") + strcmp("string", text) + strcasecmp(text, other);
        sink += strncasecmp(text, other, 3) + strnlen(text, 8) + strlen(text);
        sink += (memchr(text, 'g', 8) != 0) + (strpbrk(text, "xyz") != 0) + (strchr(text, 'n') != 0);
        if (is_wrong) {
            free(other);
            sink += strcasecmp(text, other);
        }
    }
    return unused;
}

int main(int count, char **arguments) {
    (void)arguments;
    is_wrong = count > 1;
    pthread_t one, two;
    pthread_create(&one, 0, work, 0);
    pthread_create(&two, 0, work, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 0;
}
