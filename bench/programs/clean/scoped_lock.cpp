// Accounts whose locks are taken together in any order.
#include <cassert>
#include <mutex>
#include <thread>
struct Account {
    std::mutex lock;
    int balance = 100;
};
static void move(Account &from, Account &to, int amount)
{
    std::scoped_lock both(from.lock, to.lock);
    from.balance -= amount;
    to.balance += amount;
}
int main()
{
    Account a, b;
    std::thread one([&] { move(a, b, 10); move(a, b, 5); });
    std::thread two([&] { move(b, a, 7); });
    one.join();
    two.join();
    assert(a.balance == 92 && b.balance == 108);
}
