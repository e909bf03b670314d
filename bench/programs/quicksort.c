/* Four threads sort half a million numbers each with the C library's qsort. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { COUNT = 500000 };
static int numbers[4][COUNT];
static int compare(const void *x, const void *y) { int a = *(const int *)x, b = *(const int *)y; return (a > b) - (a < b); }
static void *work(void *argument) { qsort(argument, COUNT, sizeof(int), compare); return 0; }
int main(void) {
    unsigned seed = 1;
    for (int t = 0; t < 4; t++) for (int i = 0; i < COUNT; i++) { seed = seed * 1103515245 + 12345; numbers[t][i] = seed >> 4; }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, numbers[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    printf("%d %d\n", numbers[0][0], numbers[3][COUNT - 1]);
}
