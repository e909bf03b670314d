/* A message of eight bytes through a pipe; with -DFIXED it is read to its end. */
#include <assert.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int ends[2];
    char text[8] = "";
    size_t got = 0;

    if (pipe(ends))
        return 2;
    pid_t child = fork();
    if (child == 0) {
        for (size_t sent = 0; sent < 8;) {
            ssize_t n = write(ends[1], "message" + sent, 8 - sent);
            if (n <= 0)
                _exit(1);
            sent += (size_t)n;
        }
        _exit(0);
    }
#ifdef FIXED
    while (got < 8)
#endif
    {
        ssize_t n = read(ends[0], text + got, 8 - got);
        if (n <= 0)
            return 2;
        got += (size_t)n;
    }
    assert(strcmp(text, "message") == 0);
    waitpid(child, NULL, 0);
    return 0;
}
