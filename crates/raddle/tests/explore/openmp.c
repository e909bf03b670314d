// A sum of a reduction, a critical section and, without FIXED, a counter that four threads change at once.
#include <assert.h>

int main(void)
{
    int counter = 0, sum = 0, guarded = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
    for (int i = 0; i < 8; i++) {
        sum += i;
#ifdef FIXED
#pragma omp atomic
#endif
        counter++;
#pragma omp critical
        guarded++;
    }
    assert(sum == 28 && guarded == 8);
    assert(counter == 8);
}
