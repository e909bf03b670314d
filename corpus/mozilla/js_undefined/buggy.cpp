// mozilla/js_undefined, buggy.
// Wrong: the property is counted before it is stored; a script that runs in between finds an
// undefined name and reports an error.
// Origin: Moz2, Mozilla JS-1.5, error message (ConSeq Table 4.10; ConAir Table 5.8: order
// violation)
#include <cstdio>
#include <mutex>
#include <thread>

struct Property {
    const char *volatile name;
    volatile int value;
};

static Property table[4];
static volatile int entries;
static volatile int errors;

static void define(const char *name, int value)
{
    int at = entries;

    entries = at + 1;
    table[at].name = name;
    table[at].value = value;
}

static void lookup()
{
    for (int i = 0; i < entries; i++) {
        if (table[i].name == nullptr) {
            std::fputs("ReferenceError: undefined name\n", stderr);
            errors = 1;
        }
    }
}

int main()
{
    std::thread t1(define, "length", 7);
    std::thread t2(lookup);

    t1.join();
    t2.join();
    return errors;
}
