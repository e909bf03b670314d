#include <pthread.h>
#include <stdio.h>

static const char *name = "raddle";

static void *forget(void *unused)
{
    name = NULL;
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, forget, NULL);
    if (name)
        printf("%c\n", name[0]); /* name may be NULL by now */
    pthread_join(thread, NULL);
    return 0;
}
