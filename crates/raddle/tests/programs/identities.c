// Users, groups, capabilities and permissions. Begins as the superuser; each part runs in a child of its own, because
// an identity that was given up does not come back. Prints the same natively and under raddle.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

static void tell(const char *what, long result) {
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "ok");
}
#define TELL(call) tell(#call, (long)(call))

static void who(const char *when) {
    uid_t r, e, s;
    gid_t gr, ge, gs;
    gid_t more[8];
    getresuid(&r, &e, &s);
    getresgid(&gr, &ge, &gs);
    int count = getgroups(8, more);
    printf("%s: users %d %d %d, groups %d %d %d, more", when, r, e, s, gr, ge, gs);
    for (int i = 0; i < count; i++) printf(" %d", more[i]);
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    syscall(SYS_capget, &header, data);
    printf("; may override %d %d\n", !!(data[0].effective & 2), !!(data[0].permitted & 2));
}

static void owner(const char *path) {
    struct stat s;
    if (lstat(path, &s) < 0) {
        tell(path, -1);
        return;
    }
    printf("%s: %d:%d %06o\n", path, s.st_uid, s.st_gid, s.st_mode);
}

static void become(uid_t user, gid_t group) {
    if (setgroups(0, NULL) || setresgid(group, group, group) || setresuid(user, user, user)) exit(9);
}

static void part(const char *name, void (*body)(void)) {
    printf("-- %s\n", name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        body();
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status) printf("status %x\n", status);
}

static void ids(void) {
    who("root");
    gid_t groups[] = {7, 3, 5};
    TELL(setgroups(3, groups));
    TELL(setegid(4));
    TELL(setgid(6));
    TELL(seteuid(1234));
    who("effective 1234");
    TELL(setuid(5));
    TELL(seteuid(0));
    who("back");
    TELL(setreuid(10, 11));
    who("10 and 11");
    TELL(setreuid(11, 10));
    TELL(setreuid(12, -1));
    TELL(setresuid(-1, 10, 10));
    who("last");
    TELL(setgroups(0, NULL));
    TELL(setgid(9));
}

static void kept(void) {
    TELL(prctl(PR_SET_KEEPCAPS, 1));
    TELL(setresuid(1234, 1234, 1234));
    who("kept");
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    syscall(SYS_capget, &header, data);
    data[0].effective = 1 << CAP_SETGID;
    TELL(syscall(SYS_capset, &header, data));
    TELL(setresgid(8, 8, 8));
    TELL(setresuid(1, 1, 1));
    data[0].effective = 0;
    data[0].permitted = 0;
    data[1].permitted = 0;
    TELL(syscall(SYS_capset, &header, data));
    data[0].permitted = 2;
    TELL(syscall(SYS_capset, &header, data));
    TELL(prctl(PR_CAPBSET_DROP, 0));
}

static void files(void) {
    umask(027);
    mkdir("open", 0777);
    chmod("open", 0777);
    mkdir("sticky", 01777);
    chmod("sticky", 01777);
    mkdir("group", 0777);
    chown("group", 0, 77);
    chmod("group", 02777);
    close(open("secret", O_CREAT | O_WRONLY, 0600));
    close(open("public", O_CREAT | O_WRONLY, 0644));
    chmod("public", 0644);
    close(open("sticky/roots", O_CREAT | O_WRONLY, 0666));
    mkdir("closed", 0700);
    close(open("closed/inside", O_CREAT | O_WRONLY, 0666));
    chmod(".", 0755);
    become(1234, 1234);
    TELL(open("secret", O_RDONLY));
    TELL(open("public", O_RDONLY));
    TELL(open("public", O_WRONLY));
    TELL(open("public", O_RDONLY | O_TRUNC));
    TELL(open("new", O_CREAT | O_WRONLY, 0666));
    TELL(open("open/new", O_CREAT | O_WRONLY, 06777));
    owner("open/new");
    TELL(open("group/new", O_CREAT | O_WRONLY, 02775));
    owner("group/new");
    TELL(mkdir("group/dir", 0777));
    owner("group/dir");
    TELL(symlink("x", "open/link"));
    owner("open/link");
    TELL(unlink("sticky/roots"));
    TELL(rename("sticky/roots", "sticky/mine"));
    TELL(rename("secret", "open/secret"));
    TELL(unlink("secret"));
    TELL(open("closed/inside", O_RDONLY));
    TELL(open("closed", O_RDONLY | O_DIRECTORY));
    TELL(chdir("closed"));
    TELL(mkdir("open", 0777));
    TELL(mkdir("other", 0777));
    TELL(chmod("public", 0666));
    TELL(chown("open/new", 1234, 1234));
    TELL(chown("open/new", 1, -1));
    TELL(chown("open/new", -1, 77));
    TELL(chmod("open/new", 04755));
    owner("open/new");
    TELL(utime("public", NULL));
    struct utimbuf times = {1, 2};
    TELL(utime("open/new", &times));
    TELL(utime("sticky/roots", &times));
    TELL(truncate("public", 0));
    TELL(access("secret", R_OK));
    TELL(access("secret", F_OK));
    TELL(access("public", R_OK));
    TELL(access("public", R_OK | W_OK));
    TELL(open("public", O_RDONLY | O_NOATIME));
    TELL(open("open/new", O_RDONLY | O_NOATIME));
    close(open("open/unreadable", O_CREAT | O_RDWR, 0));
    TELL(open("open/unreadable", O_RDONLY));
    TELL(unlink("open/unreadable"));
}

static void real_user(void) {
    // Access asks for the real user, open for the effective one.
    setresuid(1234, 0, 0);
    TELL(access("secret", R_OK));
    TELL(faccessat(AT_FDCWD, "secret", R_OK, AT_EACCESS));
    TELL(open("secret", O_RDONLY));
    printf("setfsuid %d\n", setfsuid(1234));
    TELL(open("secret", O_RDONLY));
    printf("setfsuid %d\n", setfsuid(0));
    TELL(open("secret", O_RDONLY));
}

static void written(void) {
    close(open("open/program", O_CREAT | O_WRONLY, 0777));
    chown("open/program", 0, 77);
    chmod("open/program", 06777);
    owner("open/program");
    become(1234, 1234);
    int fd = open("open/program", O_WRONLY);
    write(fd, "x", 1);
    owner("open/program");
}

static void processes(void) {
    pid_t other = fork();
    if (other == 0) {
        become(4321, 4321);
        pause();
        _exit(0);
    }
    while (1) {
        char path[64], text[4096] = "";
        snprintf(path, sizeof path, "/proc/%d/status", other);
        int fd = open(path, O_RDONLY);
        read(fd, text, sizeof text - 1);
        close(fd);
        if (strstr(text, "Uid:\t4321\t4321\t4321\t4321")) break;
        sched_yield();
    }
    pid_t child = fork();
    if (child == 0) {
        become(1234, 1234);
        TELL(kill(other, 0));
        TELL(kill(other, SIGTERM));
        TELL(kill(getppid(), SIGTERM));
        TELL(kill(getpid(), 0));
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max = 100;
        TELL(setrlimit(RLIMIT_NOFILE, &limit));
        limit.rlim_max = 101;
        TELL(setrlimit(RLIMIT_NOFILE, &limit));
        int s = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(80)};
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        TELL(bind(s, (void *)&in, sizeof in));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

static void sockets(void) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strcpy(at.sun_path, "closed.sock");
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    umask(077);
    TELL(bind(server, (void *)&at, sizeof at));
    listen(server, 5);
    TELL(connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&at, sizeof at));
    become(1234, 1234);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    TELL(connect(client, (void *)&at, sizeof at));
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct ucred cred;
    socklen_t size = sizeof cred;
    getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &cred, &size);
    printf("peer %d:%d\n", cred.uid, cred.gid);
}

static void executed(void) {
    // A set-user-id copy of `id`, run by another user.
    if (system("cp /usr/bin/id open/id && chown 55:66 open/id && chmod 6755 open/id && cp open/id open/mine && chmod 700 open/mine")) _exit(3);
    become(1234, 1234);
    fflush(stdout);
    if (fork() == 0) {
        execl("open/id", "id", "-u", NULL);
        _exit(4);
    }
    wait(NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (fork() == 0) {
        execl("open/id", "id", "-u", NULL);
        _exit(4);
    }
    wait(NULL);
    TELL(execl("open/mine", "id", NULL));
    TELL(execl("secret", "secret", NULL));
}

int main(void) {
    char folder[] = "/tmp/identitiesXXXXXX";
    if (!mkdtemp(folder) || chdir(folder)) return 1;
    part("ids", ids);
    part("kept capabilities", kept);
    part("files", files);
    part("real user", real_user);
    part("written", written);
    part("processes", processes);
    part("sockets", sockets);
    part("executed", executed);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0;
}
