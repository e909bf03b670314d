/* hard/adjacent_instructions, buggy.
 * Wrong: one of 200 turns reads a slot and stores it again in the next instruction, without
 * the atomic operation that all other turns use; an update in between is lost.
 * Origin: hard: a window of two adjacent instructions in a long run of correct code */
#include <pthread.h>
#include <stdatomic.h>

#define TURNS 200
#define SLOTS 8
#define ODD_ONE 137

static atomic_int slot[SLOTS];

static void *bump(void *arg)
{
    int odd_one = *(int *)arg;

    for (int i = 0; i < TURNS; i++) {
        atomic_int *at = &slot[i % SLOTS];

        if (i == odd_one)
            atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + 1,
                                  memory_order_relaxed);
        else
            atomic_fetch_add(at, 1);
    }
    return NULL;
}

int main(void)
{
    static int odd_one[2] = {ODD_ONE, -1};
    pthread_t t[2];
    int total = 0;

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, bump, &odd_one[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        total += atomic_load(&slot[i]);
    return total == 2 * TURNS ? 0 : 1;
}
