/* A child answers over a pipe, whole records at a time. */
#include <assert.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int down[2], up[2], x, status;
    if (pipe(down) || pipe(up))
        return 2;
    pid_t child = fork();
    if (child == 0) {
        close(down[1]);
        close(up[0]);
        while (read(down[0], &x, sizeof x) == sizeof x) {
            x *= 2;
            if (write(up[1], &x, sizeof x) != sizeof x)
                _exit(1);
        }
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    for (int i = 1; i <= 3; i++) {
        if (write(down[1], &i, sizeof i) != sizeof i || read(up[0], &x, sizeof x) != sizeof x)
            return 2;
        assert(x == 2 * i);
    }
    close(down[1]);
    waitpid(child, &status, 0);
    assert(status == 0);
    return 0;
}
