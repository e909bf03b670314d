// A thread throws what nobody catches.
#include <stdexcept>
#include <thread>

static int limit = 0;

static void worker() {
    if (limit == 0) {
        throw std::runtime_error("no limit was set");
    }
}

int main() {
    std::thread thread(worker);
    limit = 10;
    thread.join();
}
