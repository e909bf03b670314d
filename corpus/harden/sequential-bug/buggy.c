/* Not a concurrency bug at all: the value never becomes right. The retries run out and the assertion fails as before. */
#include <assert.h>
#include <stdio.h>

int never;

int main(void)
{
    puts("before");
    fflush(stdout);
    assert(never == 1);
    return 0;
}
