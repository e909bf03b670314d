/* Mozilla XPCOM in another spelling: a pointer class with operator->, whose target another thread assigns. */
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

struct ThreadData {
    int id = 1, state = 7;
};

template <typename T> class Pointer {
public:
    T *operator->() const { return target.load(std::memory_order_acquire); }
    void assign(T *to) { target.store(to, std::memory_order_release); }

private:
    std::atomic<T *> target{nullptr};
};

static Pointer<ThreadData> mThd;

static int get()
{
    return mThd->state & 4; /* SITE */
}

int main()
{
    auto data = std::make_unique<ThreadData>();
    std::thread init([&data] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        mThd.assign(data.get());
    });
    std::cout << "detached " << get() << "\n";
    init.join();
}
