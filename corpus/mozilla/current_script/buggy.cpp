// mozilla/current_script, buggy.
// Wrong: the load is launched in one critical section and completed in another; a thread that
// clears gCurrentScript runs between them. No data race.
// Origin: Mozilla, gCurrentScript (Fig. 1.1: atomicity violation with every access locked)
#include <mutex>
#include <thread>

struct Script {
    int compiled = 0;
    void compile() { compiled = 1; }
};

static std::mutex l;
static Script script;
static Script *gCurrentScript;

static void onLoadComplete()
{
    std::lock_guard<std::mutex> guard(l);
    gCurrentScript->compile();
}

static void loadScript(Script *aspt)
{
    {
        std::lock_guard<std::mutex> guard(l);
        gCurrentScript = aspt;
    }
    onLoadComplete();
}

static void cancel()
{
    std::lock_guard<std::mutex> guard(l);
    gCurrentScript = nullptr;
}

int main()
{
    std::thread t1(loadScript, &script);
    std::thread t2(cancel);

    t1.join();
    t2.join();
    return 0;
}
