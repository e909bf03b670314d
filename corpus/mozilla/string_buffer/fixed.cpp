// mozilla/string_buffer, fixed.
// Wrong: append() takes the other buffer's length and then its characters, each under the
// lock; the other buffer shrinks in between. No data race.
// Fix: the other buffer stays locked from the length to the copy.
// Origin: Mozilla, string buffer whose length and content are read in two steps (multi-
// variable atomicity violations of chapter 3)
#include <cassert>
#include <cstring>
#include <mutex>
#include <thread>

class StringBuffer {
  public:
    explicit StringBuffer(const char *s) : count(std::strlen(s)) { std::memcpy(value, s, count); }

    size_t length()
    {
        std::lock_guard<std::recursive_mutex> guard(lock);
        return count;
    }

    void getChars(size_t n, char *to)
    {
        std::lock_guard<std::recursive_mutex> guard(lock);
        assert(n <= count);
        std::memcpy(to, value, n);
    }

    void setLength(size_t n)
    {
        std::lock_guard<std::recursive_mutex> guard(lock);
        count = n;
    }

    void append(StringBuffer &other)
    {
        std::lock_guard<std::recursive_mutex> guard(lock);
        std::lock_guard<std::recursive_mutex> otherGuard(other.lock);
        size_t n = other.length();
        other.getChars(n, value + count);
        count += n;
    }

  private:
    std::recursive_mutex lock;
    size_t count;
    char value[64] = {};
};

static StringBuffer target("abc"), source("defghi");

int main()
{
    std::thread t1([] { target.append(source); });
    std::thread t2([] { source.setLength(0); });

    t1.join();
    t2.join();
    return target.length() == 3 || target.length() == 9 ? 0 : 1;
}
