#include <atomic>
#include <mutex>
#include <vector>

namespace outer {
std::atomic<int> hits;
std::atomic_flag door = ATOMIC_FLAG_INIT;

class Base {
public:
    long tag = 1;
    virtual ~Base() {}
};

class Account : public Base {
public:
    static int opened;
    std::mutex lock;
    std::atomic<long> balance{0};
    void deposit(long amount);
};

int Account::opened = 3;
Account account;

__attribute__((noinline)) void Account::deposit(long amount)
{
    std::lock_guard<std::mutex> guard(lock);
    balance.fetch_add(amount); // MARK add
    hits.store(1, std::memory_order_release); // MARK store
}

template <typename T> __attribute__((noinline)) T twice(T value) { return value + value; }
} // namespace outer

int main()
{
    outer::account.deposit(outer::twice<int>(outer::Account::opened));
    return outer::twice<long>(2) == 4 ? 0 : 1;
}
