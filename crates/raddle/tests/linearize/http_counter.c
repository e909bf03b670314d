/* A counter behind HTTP/1.1: POST /add adds its body and gives the old value, GET / gives the value. Buggy: the sum is
 * read and written in two critical sections. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static long add(long number)
{
    pthread_mutex_lock(&lock);
    long old = counter;
#ifdef BUGGY
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    counter = old + number;
    pthread_mutex_unlock(&lock);
    return old;
}

static long get(void)
{
    pthread_mutex_lock(&lock);
    long value = counter;
    pthread_mutex_unlock(&lock);
    return value;
}

static void *serve(void *argument)
{
    int connection = (int)(long)argument;
    char request[1024];
    ssize_t length;
    /* A client that speaks as raddle does sends a request whole. */
    while ((length = read(connection, request, sizeof request - 1)) > 0) {
        request[length] = 0;
        char *body = strstr(request, "\r\n\r\n"), reply[128], text[32];
        int is_post = !strncmp(request, "POST ", 5);
        snprintf(text, sizeof text, "%ld", is_post && body ? add(atol(body)) : get());
        int size = snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
        if (write(connection, reply, (size_t)size) != size)
            break;
    }
    close(connection);
    return 0;
}

int main(void)
{
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(8080), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 16))
        return 1;
    for (;;) {
        int connection = accept(listening, 0, 0);
        pthread_t thread;
        if (connection < 0 || pthread_create(&thread, 0, serve, (void *)(long)connection))
            return 1;
        pthread_detach(thread);
    }
}
