/* Transmission in another spelling: the session is an object, the assertion is in a static member of another class that
   receives the pointer, and a string of the caller must be cleaned up. */
#include <atomic>
#include <cassert>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

class Bandwidth {
public:
    __attribute__((noinline)) static int allowed(const Bandwidth *one, int wanted)
    {
        assert(one != nullptr && one->magic == 43143); /* SITE */
        return wanted < one->limit ? wanted : one->limit;
    }

private:
    int magic = 43143, limit = 100;
};

class Session {
public:
    int allocate(int wanted) const { return Bandwidth::allowed(bandwidth.load(std::memory_order_acquire), wanted); }
    void set(Bandwidth *to) { bandwidth.store(to, std::memory_order_release); }

private:
    std::atomic<Bandwidth *> bandwidth{nullptr};
};

static Session session;

__attribute__((noinline)) static int allocate(int wanted)
{
    return session.allocate(wanted);
}

int main()
{
    std::string name = "a name that is too long to lie in the string itself";
    auto owned = std::make_unique<Bandwidth>();
    std::thread init([&owned] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        session.set(owned.get());
    });
    int limit = allocate(name.empty() ? 0 : 500);
    std::cout << "limit " << limit << "\n";
    init.join();
}
