/* cherokee/log_message, fixed.
 * Wrong: the length of the shared status text is checked and the text is copied in two steps;
 * a longer text takes its place in between and the copy overruns the record.
 * Fix: the check and the copy are one critical section.
 * Origin: Cherokee-0.9.2, overflow of a message buffer (ConMem Table 4.3: only the symptom is
 * given, the accesses are ours) */
#include <pthread.h>
#include <string.h>

#define SHORT "200 OK"
#define LONG "416 Requested Range Not Satisfiable, see the log"

static const char *volatile status = SHORT;
static struct {
    char text[24];
    const char *volatile host;
} record = {.host = "localhost"};
static pthread_mutex_t status_lock = PTHREAD_MUTEX_INITIALIZER;

static void *write_log(void *arg)
{
    pthread_mutex_lock(&status_lock);
    if (strlen(status) < sizeof record.text)
        strcpy(record.text, status);
    pthread_mutex_unlock(&status_lock);
    return record.host[0] == 'l' ? arg : NULL;
}

static void *set_status(void *arg)
{
    pthread_mutex_lock(&status_lock);
    status = LONG;
    pthread_mutex_unlock(&status_lock);
    return arg;
}

int main(void)
{
    pthread_t t1, t2;

    pthread_create(&t1, NULL, write_log, NULL);
    pthread_create(&t2, NULL, set_status, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
