/* ski/socket_error, buggy.
 * Wrong: connect clears the socket's error and later returns it; a close sets its own error in
 * between only if it saw the connection before it was up. No data race.
 * Origin: FreeBSD 8.0 sockets, wrong error value of concurrent calls (SKI Table 6.8, bug D:
 * only the symptom is given, the accesses are ours) */
#include <pthread.h>

enum { DOWN, UP };
enum { NO_ERROR, RESET_BY_PEER };

static pthread_mutex_t so_lock = PTHREAD_MUTEX_INITIALIZER;
static int state = DOWN, so_error;
static int connect_result;

static void *connect_socket(void *arg)
{
    pthread_mutex_lock(&so_lock);
    so_error = NO_ERROR;
    state = UP;
    pthread_mutex_unlock(&so_lock);

    pthread_mutex_lock(&so_lock);
    connect_result = so_error;
    pthread_mutex_unlock(&so_lock);
    return arg;
}

static void *peer_close(void *arg)
{
    int seen;

    pthread_mutex_lock(&so_lock);
    seen = state;
    pthread_mutex_unlock(&so_lock);

    if (seen == DOWN) {
        pthread_mutex_lock(&so_lock);
        so_error = RESET_BY_PEER;
        pthread_mutex_unlock(&so_lock);
    }
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, connect_socket, NULL);
    pthread_create(&t2, NULL, peer_close, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return connect_result == NO_ERROR ? 0 : 1;
}
