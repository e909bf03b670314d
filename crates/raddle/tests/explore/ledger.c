/* Two clerks book into one ledger without a lock: what one books is lost. For tests of debuggers: structures, arrays,
   pointers, a list and a function that calls itself. */
#include <assert.h>
#include <pthread.h>

struct entry {
    const char *clerk;
    int amount;
    struct entry *next;
};

struct ledger {
    long balance;
    int booked[2][3];
    struct entry *last;
    unsigned is_open : 1;
    unsigned rounds : 3;
};

static struct entry first = {"opening", 100, 0};
struct ledger ledger = {100, {{1, 2, 3}, {4, 5, 6}}, &first, 1, 5};

static int depth(int levels)
{
    if (levels == 0)
        return 0;
    int below = depth(levels - 1);
    return below + 1;
}

static void book(struct entry *entry)
{
    long before = ledger.balance;
    long after = before + entry->amount;
    ledger.balance = after;
}

static void *clerk(void *argument)
{
    struct entry *entry = argument;
    book(entry);
    return 0;
}

int main(void)
{
    struct entry entries[2] = {{"anna", 50, &first}, {"bert", 30, &first}};
    pthread_t threads[2];
    int levels = depth(3);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, clerk, &entries[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    assert(levels == 3);
    assert(ledger.balance == 180);
    return 0;
}
