/* Two threads multiply matrices of doubles. */
#include <pthread.h>
#include <stdio.h>
enum { N = 256 };
static double a[N][N], b[N][N], c[N][N];
static void *work(void *argument) {
    long first = (long)argument;
    for (int i = first; i < N; i += 2)
        for (int j = 0; j < N; j++) { double sum = 0; for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j]; c[i][j] = sum; }
    return 0;
}
int main(void) {
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { a[i][j] = i * 0.5 + j; b[i][j] = i - j * 0.25; }
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%.3f\n", c[17][200]);
}
