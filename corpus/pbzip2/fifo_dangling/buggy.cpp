// pbzip2/fifo_dangling, buggy.
// Wrong: main deletes the fifo when the consumer has counted its last block; the consumer's
// loop still looks at the fifo.
// Origin: PBZIP2-2, the queue is deleted (S1) before a consumer reads it for the last time
// (S2) (ConMem Fig. 4.5)
#include <condition_variable>
#include <mutex>
#include <thread>

struct Queue {
    long header[3] = {}; // an allocator's own words in a freed object do not reach empty
    volatile int *volatile empty = new int(0);
    ~Queue()
    {
        delete empty;
        empty = nullptr;
    }
};

static std::mutex outLock;
static std::condition_variable outCond;
static bool done;

static void consumer(Queue *fifo)
{
    while (!*fifo->empty) { // S2
        *fifo->empty = 1;
        std::unique_lock<std::mutex> guard(outLock);
        done = true;
    }
    outCond.notify_one();
}

int main()
{
    Queue *q = new Queue;
    std::thread t(consumer, q);

    {
        std::unique_lock<std::mutex> guard(outLock);
        outCond.wait(guard, [] { return done; });
    }
    delete q; // S1
    t.join();
    return 0;
}
