/* A hash table with a lock per bucket. */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
struct entry {
    struct entry *next;
    int key;
};
static struct {
    pthread_mutex_t lock;
    struct entry *first;
} bucket[3];
static void *insert(void *arg)
{
    for (int i = 0; i < 4; i++) {
        struct entry *e = malloc(sizeof *e);
        e->key = (int)(intptr_t)arg * 10 + i;
        int b = e->key % 3;
        pthread_mutex_lock(&bucket[b].lock);
        e->next = bucket[b].first;
        bucket[b].first = e;
        pthread_mutex_unlock(&bucket[b].lock);
    }
    return NULL;
}
int main(void)
{
    pthread_t t[2];
    int count = 0;
    for (int i = 0; i < 3; i++)
        pthread_mutex_init(&bucket[i].lock, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, insert, (void *)(intptr_t)i);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 3; i++)
        for (struct entry *e = bucket[i].first, *next; e; e = next) {
            next = e->next;
            free(e);
            count++;
        }
    assert(count == 8);
    return 0;
}
