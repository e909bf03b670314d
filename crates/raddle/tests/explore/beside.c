// Variables that share eight bytes: each is raced for by itself, or by nobody.
#include <pthread.h>
#include <stdatomic.h>

static struct {
    int data;
    int flag;
} plain;

static struct {
    int data;
    atomic_int count;
} mixed;

static struct {
    int mine;
    int yours;
} apart;

static void *write_all(void *arg) {
    plain.data = 42;
    plain.flag = 1;
    mixed.data = 7;
    atomic_fetch_add(&mixed.count, 1);
    apart.mine = 1;
    return arg;
}

static void *read_some(void *arg) {
    atomic_fetch_add(&mixed.count, 1);
    apart.yours = 1;
    int sum = plain.data + mixed.data;
    return sum > 1000 ? arg : 0;
}

int main(void) {
    pthread_t writer, reader;
    pthread_create(&writer, 0, write_all, 0);
    pthread_create(&reader, 0, read_some, 0);
    pthread_join(writer, 0);
    pthread_join(reader, 0);
    return 0;
}
