/* Values that become addresses, lengths and texts, and values that do not. */
#include <string.h>

volatile int place, count, far, flag, sum;
char *volatile text;
char *volatile pointer;
char buffer[64];
int table[64];

__attribute__((noinline)) int indexed(void) { return table[place]; }

__attribute__((noinline)) void stored(char c) { buffer[place + 8] = c; }

__attribute__((noinline)) void copied(const char *from) { memcpy(buffer, from, (size_t)count); }

__attribute__((noinline)) void texted(void) { strcpy(buffer, text); }

__attribute__((noinline)) char pointed(void) { return *pointer; }

__attribute__((noinline)) int too_far(void)
{
    int value = far;
    value = value * 7 ^ 3;
    value = value % 11 + 5;
    value = (value << 3 | value) - 9;
    return table[value & 63];
}

__attribute__((noinline)) int only_tested(void) { return flag ? table[1] : table[2]; }

__attribute__((noinline)) void only_added(void) { sum = sum + 1; }

int main(int argc, char **argv)
{
    stored((char)argc);
    copied(argv[0]);
    texted();
    only_added();
    return indexed() + pointed() + too_far() + only_tested();
}
