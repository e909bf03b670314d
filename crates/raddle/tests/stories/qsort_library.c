// The comparison is called from the C library; the table that it uses is changed meanwhile.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int keys[4] = {3, 1, 2, 0};
static char names[2][16] = {"first", "second"};
static char copy[16];

static int compare(const void *left, const void *right) {
    return keys[*(const int *)left] - keys[*(const int *)right];
}

static void *sorter(void *argument) {
    (void)argument;
    int order[4] = {0, 1, 2, 3};
    qsort(order, 4, sizeof *order, compare);
    strcpy(copy, names[0]);
    return NULL;
}

static void *changer(void *argument) {
    (void)argument;
    keys[0] = -1;
    strcpy(names[0], "longer text");
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, sorter, NULL);
    pthread_create(&two, NULL, changer, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert(strcmp(copy, "first") == 0);
    return 0;
}
