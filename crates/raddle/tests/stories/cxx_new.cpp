// The cache is made with `new` before any thread exists; two threads fill the same slot.
#include <cassert>
#include <thread>
#include <vector>

struct Cache {
    long hits = 0;
    long misses = 0;
};

static Cache *cache = new Cache;

static void look_up() {
    long old = cache->misses;
    cache->misses = old + 1;
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++) {
        threads.emplace_back(look_up);
    }
    for (auto &thread : threads) {
        thread.join();
    }
    assert(cache->misses == 2);
    delete cache;
}
