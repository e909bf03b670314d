// A local static variable is made once.
#include <cassert>
#include <string>
#include <thread>
static int made = 0;
static const std::string &name()
{
    static const std::string text = [] { made++; return std::string("a name that needs the heap to be kept"); }();
    return text;
}
int main()
{
    auto look = [] { assert(name().size() > 20); };
    std::thread a(look), b(look), c(look);
    a.join();
    b.join();
    c.join();
    assert(made == 1);
}
