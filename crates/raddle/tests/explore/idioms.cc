// What C++ programs order their accesses with; nothing here is a race.
#include <atomic>
#include <future>
#include <iostream>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>

namespace {

std::mutex mutex;
std::shared_mutex table;
std::once_flag once;
std::latch latch(2);
std::counting_semaphore<4> semaphore(0);
std::atomic<bool> is_over{false};

int initialised, locked, in_table, latched, counted, promised;
std::string text = "a string that needs memory of its own";
thread_local int sum;

struct Lazy {
    int value = 42;
};

Lazy &lazy()
{
    static Lazy the_only_one;
    return the_only_one;
}

void worker(bool is_sender)
{
    std::call_once(once, [] { initialised = 9; });
    sum = initialised + lazy().value;
    {
        std::scoped_lock guard(mutex);
        locked++;
        text += ", and then some";
    }
    {
        std::unique_lock guard(table);
        in_table++;
    }
    {
        std::shared_lock guard(table);
        sum += in_table;
    }
    if (is_sender) {
        latched = 1;
        latch.count_down();
        latch.wait();
        counted = 3;
        semaphore.release();
    } else {
        latch.arrive_and_wait();
        sum += latched;
        semaphore.acquire();
        sum += counted;
    }
    std::cout << "done" << std::endl;
}

} // namespace

int main()
{
    auto number = std::make_shared<int>(5);
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread first(worker, false), second(worker, true);
    std::thread third([&promise, number] {
        promised = *number;
        promise.set_value(1);
        is_over.store(true);
        is_over.notify_all();
    });

    future.get();
    int result = promised;
    is_over.wait(false);
    result += std::async(std::launch::async, [] { return promised + 1; }).get();
    first.join();
    second.join();
    third.join();
    return locked == 2 && in_table == 2 && result == 11 ? 0 : 1;
}
