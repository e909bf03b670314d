// A cache asks its registry under its own lock; the registry drops entries of the cache under another.
#include <map>
#include <mutex>
#include <thread>

struct Registry;

struct Cache {
    std::mutex lock;
    std::map<int, int> entries;
    int get(Registry &registry, int key);
    void forget(int key) {
        std::lock_guard<std::mutex> guard(lock);
        entries.erase(key);
    }
};

struct Registry {
    std::mutex lock;
    int load(int key) {
        std::lock_guard<std::mutex> guard(lock);
        return 2 * key;
    }
    void drop(Cache &cache, int key) {
        std::lock_guard<std::mutex> guard(lock);
        cache.forget(key);
    }
};

int Cache::get(Registry &registry, int key) {
    std::lock_guard<std::mutex> guard(lock);
    return entries[key] = registry.load(key);
}

static Cache cache;
static Registry registry;

int main() {
    std::thread user([] { cache.get(registry, 1); });
    std::thread owner([] { registry.drop(cache, 1); });
    user.join();
    owner.join();
}
