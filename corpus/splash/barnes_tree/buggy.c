/* splash/barnes_tree, buggy.
 * Wrong: ALOCK chooses the lock by process instead of by cell, so two processes can fill the
 * same empty child and a body is lost.
 * Origin: Barnes of SPLASH-2, platform macro that locks the wrong lock (CTrigger Table 2: only
 * the symptom is given, the accesses are ours) */
#include <pthread.h>

#define P 2
#define CELLS 2
#define ALOCK(a, cell, me) pthread_mutex_lock(&(a)[(me)])
#define AULOCK(a, cell, me) pthread_mutex_unlock(&(a)[(me)])

struct body {
    struct body *next;
    int me;
};

static pthread_mutex_t cell_lock[P] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static struct body *volatile child[CELLS];
static struct body bodies[P];

static void *load_tree(void *arg)
{
    struct body *b = arg;
    int cell = 1;

    (void)cell;
    ALOCK(cell_lock, cell, b->me);
    if (child[cell] == NULL) {
        child[cell] = b;
    } else {
        b->next = child[cell];
        child[cell] = b;
    }
    AULOCK(cell_lock, cell, b->me);
    return NULL;
}

int main(void)
{
    pthread_t t[P];
    int found = 0;

    for (int i = 0; i < P; i++) {
        bodies[i].me = i;
        pthread_create(&t[i], NULL, load_tree, &bodies[i]);
    }
    for (int i = 0; i < P; i++)
        pthread_join(t[i], NULL);
    for (struct body *b = child[1]; b != NULL; b = b->next)
        found++;
    return found == P ? 0 : 1;
}
