// Two programs share a page; the one that is executed finishes the count that the other one has begun.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    volatile long count;
};

static struct shared *map(int file) {
    return mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void executed_adds(struct shared *shared) {
    long old = shared->count;
    shared->count = old + 1;
}

static void first_adds(struct shared *shared) {
    long old = shared->count;
    shared->count = old + 1;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "again") == 0) {
        executed_adds(map(3));
        return 0;
    }
    int file = open("/tmp/shared-count", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file != 3 || ftruncate(file, sizeof(struct shared))) {
        return 9;
    }
    struct shared *shared = map(file);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        _exit(9);
    }
    first_adds(shared);
    waitpid(child, NULL, 0);
    return shared->count == 2 ? 0 : 5;
}
