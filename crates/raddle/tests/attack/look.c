/* Tells what is at each path: nothing, a file with its first bytes, or a folder with its names. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list(const char *path) {
    char *names[4096];
    int count = 0;
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) && count < 4096)
        if (entry->d_name[0] != '.')
            names[count++] = strdup(entry->d_name);
    qsort(names, count, sizeof names[0], by_name);
    for (int i = 0; i < count; i++)
        printf(" %s", names[i]);
}

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) {
        struct stat status;
        char bytes[9] = "";
        if (stat(paths[i], &status) < 0) {
            printf("%s: nothing\n", paths[i]);
        } else if (S_ISDIR(status.st_mode)) {
            printf("%s: folder", paths[i]);
            list(paths[i]);
            printf("\n");
        } else {
            int file = open(paths[i], O_RDONLY);
            if (read(file, bytes, 8) < 0)
                strcpy(bytes, "denied");
            printf("%s: file %s\n", paths[i], bytes);
        }
    }
    return 0;
}
