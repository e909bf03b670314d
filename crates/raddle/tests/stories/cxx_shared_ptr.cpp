// The shared pointer itself is shared without a lock: one thread resets it while the other copies it.
#include <cstdio>
#include <memory>
#include <thread>

struct Config {
    int level = 3;
};

static std::shared_ptr<Config> current = std::make_shared<Config>();
static int level;

static void reader() {
    if (current) {
        level = current->level;
    }
}

static void writer() {
    current.reset();
}

int main() {
    std::thread one(reader);
    std::thread two(writer);
    one.join();
    two.join();
    return 0;
}
