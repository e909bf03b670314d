// classic/work_stealing, buggy.
// Wrong: the owner takes the last task without competing for it; a thief that read the indices
// before takes the same task.
// Origin: classic: work-stealing queue whose owner does not settle the last task with the
// thieves
#include <atomic>
#include <cassert>
#include <thread>

static const int TASKS = 2;

static std::atomic<long> top{0}, bottom{0};
static std::atomic<int> slots[8];
static std::atomic<int> executed[TASKS];

static void push(int task)
{
    long b = bottom.load();

    slots[b % 8].store(task);
    bottom.store(b + 1);
}

static int pop()
{
    long b = bottom.load() - 1;

    bottom.store(b);
    long t = top.load();
    if (t > b) {
        bottom.store(b + 1);
        return -1;
    }
    int task = slots[b % 8].load();
    return task;
}

static int steal()
{
    long t = top.load();
    long b = bottom.load();

    if (t >= b)
        return -1;
    int task = slots[t % 8].load();
    return top.compare_exchange_strong(t, t + 1) ? task : -1;
}

static void execute(int task)
{
    if (task >= 0)
        assert(executed[task].fetch_add(1) == 0);
}

int main()
{
    for (int i = 0; i < TASKS; i++)
        push(i);
    std::thread thief([] { execute(steal()); });
    std::thread owner([] {
        for (int i = 0; i < TASKS; i++)
            execute(pop());
    });

    thief.join();
    owner.join();
    return 0;
}
