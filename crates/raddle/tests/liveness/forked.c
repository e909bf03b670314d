/* A child waits by yielding for a few turns, then writes memory that it still shares with its parent. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char page[4 * 4096] = "parent";
static volatile int turns;

int main(void)
{
    volatile int *go = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(page + 2 * 4096, "ours");
    pid_t child = fork();
    for (turns = 0; turns < 3 && !*go; turns++)
        sched_yield();
    strcpy(page + 2 * 4096, child ? "mine" : "yours");
    *go = 1;
    if (child) {
        int status;
        waitpid(child, &status, 0);
        return status != 0 || strcmp(page + 2 * 4096, "mine");
    }
    return strcmp(page + 2 * 4096, "yours");
}
