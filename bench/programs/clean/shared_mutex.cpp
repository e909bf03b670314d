// Many readers or one writer.
#include <cassert>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>
int main()
{
    std::shared_mutex lock;
    std::map<int, int> squares;
    std::thread writer([&] {
        for (int i = 0; i < 3; i++) {
            std::unique_lock guard(lock);
            squares[i] = i * i;
        }
    });
    auto read = [&] {
        for (int i = 0; i < 3; i++) {
            std::shared_lock guard(lock);
            auto found = squares.find(i);
            assert(found == squares.end() || found->second == i * i);
        }
    };
    std::thread a(read), b(read);
    writer.join();
    a.join();
    b.join();
    assert(squares.size() == 3);
}
