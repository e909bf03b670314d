// A server whose set-up has a race of its own, and whose two workers lose an update.
#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static long ready, balance = 100;
static int listener;

static void *set_up(void *a) { ready = ready + 1; return a; }

static void *serve(void *a) {
    char request;
    int client = accept(listener, 0, 0);
    read(client, &request, 1);
    balance = balance + 50;
    close(client);
    return a;
}

int main(void) {
    pthread_t one, two;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7777)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pthread_create(&one, 0, set_up, 0);
    set_up(0);
    pthread_join(one, 0);
    assert(ready == 2);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (void *)&at, sizeof at);
    listen(listener, 2);
    pthread_create(&one, 0, serve, 0);
    pthread_create(&two, 0, serve, 0);
    for (int i = 0; i < 2; i++) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        connect(client, (void *)&at, sizeof at);
        write(client, "x", 1);
    }
    pthread_join(one, 0);
    pthread_join(two, 0);
    assert(balance == 200);
    return 0;
}
