/* Two processes count in shared memory under a process-shared mutex. */
#include <assert.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
struct shared {
    pthread_mutex_t lock;
    int count;
};
int main(void)
{
    pthread_mutexattr_t attr;
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&s->lock, &attr);
    pid_t child = fork();
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&s->lock);
        s->count++;
        pthread_mutex_unlock(&s->lock);
    }
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    assert(s->count == 8);
    return 0;
}
