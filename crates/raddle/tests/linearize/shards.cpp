// A sharded map of C++ with reader locks. BUGGY: `add` reads under the reader lock and stores under the writer lock.
// BOTH: `total` takes one shard after the other, so that it sees a sum that never was.
#include <array>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "raddle.h"

class Shards {
    struct Shard {
        std::shared_mutex lock;
        std::map<int, long> values;
    };
    std::array<Shard, 4> shards;

    Shard &shard(int key) { return shards[key % shards.size()]; }

public:
    long get(int key)
    {
        Shard &own = shard(key);
        std::shared_lock guard(own.lock);
        auto found = own.values.find(key);
        return found == own.values.end() ? 0 : found->second;
    }

    long add(int key, long number)
    {
        Shard &own = shard(key);
#ifdef BUGGY
        long sum = get(key) + number;
        std::unique_lock guard(own.lock);
        own.values[key] = sum;
        return sum;
#else
        std::unique_lock guard(own.lock);
        return own.values[key] += number;
#endif
    }

    long total()
    {
#ifndef BOTH
        for (Shard &each : shards)
            each.lock.lock_shared();
#endif
        long sum = 0;
        for (Shard &each : shards) {
#ifdef BOTH
            std::shared_lock guard(each.lock);
#endif
            for (auto &[key, value] : each.values)
                sum += value;
        }
#ifndef BOTH
        for (Shard &each : shards)
            each.lock.unlock_shared();
#endif
        return sum;
    }
};

static Shards shards;

static void add(int key, long number)
{
    raddle_begin("add");
    raddle_argument(key);
    raddle_argument(number);
    raddle_result(shards.add(key, number));
    raddle_end_operation();
}

static void total()
{
    raddle_begin("total");
    raddle_result(shards.total());
    raddle_end_operation();
}

int main()
{
    std::thread one([] {
        add(1, 1);
        add(2, 10);
    });
    std::thread other([] {
        add(1, 100);
        total();
    });
    one.join();
    other.join();
    for (int key = 0; key < 4; key++) {
        raddle_probe("get");
        raddle_argument(key);
        raddle_result(shards.get(key));
        raddle_end_operation();
    }
}
