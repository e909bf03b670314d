/* Tries to change or reach what is outside: a file, a port, two processes. Each line says what came of it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void tell(const char *what, long result) {
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "taken");
}

/* What must never be taken. */
static void never(const char *what, long result) {
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "REACHED");
}

int main(int count, char **arguments) {
    (void)count;
    const char *file = arguments[1];
    int port = atoi(arguments[2]);
    pid_t host = atoi(arguments[3]), victim = atoi(arguments[4]);
    char path[4096], bytes[16] = "theirs";
    /* Files: these change the guest's own overlay and nothing else. */
    int fd = open(file, O_RDWR);
    tell("open", fd);
    tell("write", write(fd, bytes, 6));
    tell("truncate", ftruncate(fd, 0));
    tell("chmod", chmod(file, 06777));
    snprintf(path, sizeof path, "%s.hard", file);
    tell("link", link(file, path));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tell("reopen", open(path, O_WRONLY | O_TRUNC));
    snprintf(path, sizeof path, "/proc/self/root%s", file);
    tell("by way of the root", open(path, O_WRONLY | O_TRUNC));
    snprintf(path, sizeof path, "/proc/%d/cwd", host);
    never("folder of another process", open(path, O_RDONLY));
    tell("rename", rename(file, "/stolen"));
    tell("unlink", unlink("/stolen"));
    /* Devices and the kernel's own files. */
    never("/dev/mem", open("/dev/mem", O_RDWR));
    never("/dev/kmsg", open("/dev/kmsg", O_RDWR));
    never("/dev/vda", open("/dev/vda", O_RDWR));
    never("/dev/sda", open("/dev/sda", O_RDWR));
    never("sysrq", open("/proc/sysrq-trigger", O_WRONLY));
    never("kcore", open("/proc/kcore", O_RDONLY));
    never("device node", mknod("/node", S_IFBLK | 0600, 0x0801));
    /* Processes. */
    never("kill the host's process", kill(host, SIGKILL));
    never("kill a process", kill(victim, SIGKILL));
    never("kill its group", kill(-victim, SIGKILL));
    never("trace the host's process", ptrace(PTRACE_ATTACH, host, 0, 0));
    struct iovec own = {bytes, sizeof bytes}, other = {(void *)0x400000, sizeof bytes};
    never("memory of another process", process_vm_readv(victim, &own, 1, &other, 1, 0));
    never("descriptor of a process", syscall(SYS_pidfd_open, victim, 0));
    /* Network: only the guest's own loopback exists. */
    for (int each = 0; each < 3; each++) {
        const char *names[] = {"127.0.0.1", "8.8.8.8", "10.0.0.1"};
        int to = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
        inet_pton(AF_INET, names[each], &address.sin_addr);
        never(names[each], connect(to, (struct sockaddr *)&address, sizeof address));
    }
    never("raw socket", socket(AF_INET, SOCK_RAW, 1));
    never("packet socket", socket(AF_PACKET, SOCK_RAW, 0));
    /* The machine. */
    never("mount", mount("none", "/mnt", "tmpfs", 0, 0));
    never("reboot", reboot(RB_AUTOBOOT));
    never("module", syscall(SYS_init_module, bytes, sizeof bytes, ""));
    never("bpf", syscall(SYS_bpf, 5, bytes, sizeof bytes));
    never("set the clock", syscall(SYS_settimeofday, bytes, 0));
    never("swap", syscall(SYS_swapon, file, 0));
    puts("all attempts made");
    return 0;
}
