/* Four threads insert into a chained hash table with one mutex per 1024 buckets. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { BUCKETS = 65536, LOCKS = 64 };
struct entry { struct entry *next; unsigned long key; };
static struct entry *buckets[BUCKETS];
static pthread_mutex_t locks[LOCKS];
static void *work(void *argument) {
    unsigned long x = 88172645463325252ul + (unsigned long)argument * 7919;
    for (int i = 0; i < 200000; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        unsigned long key = x % 200000, h = (key * 0x9E3779B97F4A7C15ul) >> 48;
        pthread_mutex_lock(&locks[h % LOCKS]);
        struct entry *e = buckets[h];
        while (e && e->key != key) e = e->next;
        if (!e) { e = malloc(sizeof *e); e->key = key; e->next = buckets[h]; buckets[h] = e; }
        pthread_mutex_unlock(&locks[h % LOCKS]);
    }
    return 0;
}
int main(void) {
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], 0);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    long count = 0;
    for (int i = 0; i < BUCKETS; i++) for (struct entry *e = buckets[i]; e; e = e->next) count++;
    printf("%ld\n", count);
}
