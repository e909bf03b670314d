// Parent and child write to one pipe, and the reader counts on the order.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    if (pipe(ends)) {
        return 9;
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(write(ends[1], "c", 1) != 1);
    }
    if (write(ends[1], "p", 1) != 1) {
        return 9;
    }
    char text[3] = "";
    for (int got = 0; got < 2;) {
        ssize_t count = read(ends[0], text + got, 2 - got);
        if (count <= 0) {
            return 9;
        }
        got += count;
    }
    waitpid(child, NULL, 0);
    return strcmp(text, "pc") ? 4 : 0;
}
