// The mmap family.
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define P 4096
static sigjmp_buf back;
static void jump(int n) { siglongjmp(back, n); }
static int touch(volatile char *p, int write) {
    int r = sigsetjmp(back, 1);
    if (r == 0) {
        if (write) *p = 1; else (void)*p;
    }
    return r;
}
static char *anon(size_t n) { return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGSEGV, jump);
    signal(SIGBUS, jump);
    char *p = anon(4 * P);
    memset(p, 7, 4 * P);
    munmap(p + P, P);
    printf("hole: %d %d %d\n", touch(p, 0), touch(p + P, 0), touch(p + 2 * P, 0));
    printf("protect across hole: %s\n", mprotect(p, 4 * P, PROT_READ) < 0 ? strerror(errno) : "fine");
    mprotect(p, P, PROT_READ);
    printf("read-only: %d %d\n", touch(p, 0), touch(p, 1));
    mprotect(p, P, PROT_NONE);
    printf("none: %d\n", touch(p, 0));
    mprotect(p, P, PROT_READ | PROT_WRITE);
    printf("content kept: %d\n", p[5]);
    madvise(p, P, MADV_DONTNEED);
    printf("dropped: %d\n", p[5]);
    printf("taken: %s\n", mmap(p, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED ? strerror(errno) : "fine");
    p[0] = 9;
    char *q = mmap(p, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("replaced: %d %d\n", q == p, q[0]);
    printf("unaligned: %s\n", mmap(p + 1, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? strerror(errno) : "fine");
    printf("empty: %s\n", mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? strerror(errno) : "fine");
    printf("too much: %s\n", mmap(NULL, (size_t)1 << 46, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? strerror(errno) : "fine");
    printf("reserved only: %d\n", mmap(NULL, (size_t)1 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED);

    char *r = anon(2 * P);
    strcpy(r + P, "moved");
    r = mremap(r, 2 * P, 64 * P, MREMAP_MAYMOVE);
    printf("grown: %s %d\n", r + P, r[63 * P]);
    r = mremap(r, 64 * P, 2 * P, 0);
    printf("shrunk: %s %d\n", r + P, touch(r + 2 * P, 0));
    char *target = anon(8 * P);
    r = mremap(r, 2 * P, 2 * P, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    printf("placed: %d %s\n", r == target, r + P);

    FILE *f = tmpfile();
    int fd = fileno(f);
    if (ftruncate(fd, 2 * P) != 0) return 1;
    char *s1 = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *s2 = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, P);
    char *priv = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    strcpy(s1 + P, "through");
    printf("alias: %s\n", s2);
    char buffer[16] = "";
    if (pread(fd, buffer, 8, P) != 8) return 1;
    printf("file sees it: %s\n", buffer);
    if (pwrite(fd, "written", 8, P) != 8) return 1;
    printf("mapping sees write: %s\n", s2);
    strcpy(priv, "private");
    printf("private does not leak: '%s'\n", s1);
    msync(s1, 2 * P, MS_SYNC);
    pid_t c = fork();
    if (c == 0) {
        strcpy(s1, "child");
        strcpy(priv, "other");
        _exit(0);
    }
    waitpid(c, NULL, 0);
    printf("after fork: %s %s\n", s1, priv);
    if (ftruncate(fd, P) != 0) return 1;
    printf("beyond the end: %d\n", touch(s2, 0));

    void *b = sbrk(0);
    char *heap = sbrk(3 * P);
    heap[2 * P] = 4;
    printf("brk: %d %d", heap == b, heap[2 * P]);
    sbrk(-3 * P);
    printf(" %d\n", sbrk(0) == b);
    unsigned char vec[2] = {0};
    int resident = mincore(target, 2 * P, vec);
    printf("mincore: %d %d\n", resident, vec[0] & 1);
    printf("mincore of nothing: %s\n", mincore((void *)(16 * P), P, vec) < 0 ? strerror(errno) : "fine");
    char *x = mmap(NULL, P, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char code1[] = {0xB8, 1, 0, 0, 0, 0xC3}, code2[] = {0xB8, 2, 0, 0, 0, 0xC3};
    memcpy(x, code1, 6);
    int first = ((int (*)(void))(intptr_t)x)();
    memcpy(x, code2, 6);
    printf("code made and changed: %d %d\n", first, ((int (*)(void))(intptr_t)x)());
    mprotect(x, P, PROT_READ);
    int n = sigsetjmp(back, 1);
    if (n == 0) ((void (*)(void))(intptr_t)x)();
    printf("not executable: %d\n", n);
    size_t total = 0;
    for (int i = 1; i < 400; i++) {
        char *m = malloc((size_t)i * 997);
        memset(m, i, (size_t)i * 997);
        total += (size_t)(unsigned char)m[i];
        if (i % 3) free(m);
    }
    printf("malloc: %zu\n", total);
    return 0;
}
