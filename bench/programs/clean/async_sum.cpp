// Halves of a sum by std::async.
#include <cassert>
#include <future>
#include <numeric>
#include <vector>
int main()
{
    std::vector<int> all(20);
    std::iota(all.begin(), all.end(), 1);
    auto half = [&](int from, int to) { return std::accumulate(all.begin() + from, all.begin() + to, 0); };
    auto first = std::async(std::launch::async, half, 0, 10);
    auto second = std::async(std::launch::async, half, 10, 20);
    assert(first.get() + second.get() == 210);
}
