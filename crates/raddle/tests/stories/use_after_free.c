// The writer replaces the list's head and frees the old one while a reader still holds a pointer to it.
#include <pthread.h>
#include <stdlib.h>

struct node {
    struct node *next;
    long value;
};

static struct node *head;
static long seen;

static void *reader(void *argument) {
    (void)argument;
    struct node *it = head;
    seen = it->value;
    return NULL;
}

static void *writer(void *argument) {
    (void)argument;
    struct node *fresh = malloc(sizeof *fresh);
    fresh->next = NULL;
    fresh->value = 2;
    struct node *old = head;
    head = fresh;
    free(old);
    return NULL;
}

int main(void) {
    head = malloc(sizeof *head);
    head->next = NULL;
    head->value = 1;
    pthread_t one, two;
    pthread_create(&one, NULL, reader, NULL);
    pthread_create(&two, NULL, writer, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
