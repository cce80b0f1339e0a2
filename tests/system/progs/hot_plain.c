// link: none
// flags: -O2 -g -fomit-frame-pointer
// libs: -lpthread
/* hot_plain: known shares of CPU time, without frame pointers.
 *
 *     hot_plain SECONDS [threads|fork|idle]
 *
 * threads: the same in two threads called "hot-a" and "hot-b"; fork: all of it in a
 * child; idle: sleeps as long before, which must not be seen.
 */
#include "hot_work.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds;

static void *work(void *truth)
{
    hot_work(seconds / 2, truth);
    return NULL;
}

static void in_threads(struct hot_truth *t)
{
    struct hot_truth other = { 0 };
    pthread_t a, b;
    (void)pthread_create(&a, NULL, work, t);
    (void)pthread_setname_np(a, "hot-a");
    (void)pthread_create(&b, NULL, work, &other);
    (void)pthread_setname_np(b, "hot-b");
    (void)pthread_join(a, NULL);
    (void)pthread_join(b, NULL);
    t->sixty += other.sixty;
    t->thirty += other.thirty;
    t->ten += other.ten;
}

int main(int argc, char **argv)
{
    struct hot_truth t = { 0 };
    const char *how = argc > 2 ? argv[2] : "";
    seconds = argc > 1 ? atof(argv[1]) : 1;
    if (strcmp(how, "fork") == 0) {
        const pid_t pid = fork();
        if (pid > 0)
            return waitpid(pid, NULL, 0) == pid ? 0 : 1;
    }
    if (strcmp(how, "idle") == 0)
        (void)usleep((useconds_t)(seconds * 1e6));
    if (strcmp(how, "threads") == 0)
        in_threads(&t);
    else
        hot_work(seconds, &t);
    hot_print(&t);
    return 0;
}
