// link: a
// flags: -O1 -g -fomit-frame-pointer
// libs: -pthread
/* deadlock: two threads each hold a mutex and want the other's, until SIGUSR1.
 *
 * Both wait in train › both of the main thread. SIGUSR1 makes the main thread give its
 * mutex back; then the other one goes on, both end, and the program prints "freed".
 * Functions have no frame pointers: who wants their callers has to unwind.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include <sonde/sonde.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_have_one;

/* Not safe in general; here the handler interrupts nothing but the wait for `right`. */
static void give_left_back(int signal)
{
    (void)signal;
    (void)pthread_mutex_unlock(&left);
}

__attribute__((noinline)) static int take_right_too(void)
{
    const int rc = pthread_mutex_lock(&right); /* the main thread waits here */
    return rc == 0;
}

__attribute__((noinline)) static int hold_left(void)
{
    (void)pthread_mutex_lock(&left);
    (void)pthread_barrier_wait(&both_have_one);
    const int got = take_right_too();
    (void)pthread_mutex_unlock(&right);
    return got;
}

__attribute__((noinline)) static int take_left_too(void)
{
    const int rc = pthread_mutex_lock(&left); /* the other thread waits here */
    return rc == 0;
}

static void *hold_right(void *arg)
{
    sigset_t usr1;
    (void)sigemptyset(&usr1);
    (void)sigaddset(&usr1, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    (void)pthread_mutex_lock(&right);
    (void)pthread_barrier_wait(&both_have_one);
    *(int *)arg = take_left_too();
    (void)pthread_mutex_unlock(&left);
    (void)pthread_mutex_unlock(&right);
    return arg;
}

int main(void)
{
    pthread_t other;
    int theirs = 0, ours = 0;
    (void)pthread_barrier_init(&both_have_one, NULL, 2);
    (void)signal(SIGUSR1, give_left_back);
    SONDE_ZONE("train", SONDE_NO_PHASE) {
        SONDE_ZONE("both", SONDE_SYNC) {
            if (pthread_create(&other, NULL, hold_right, &theirs) != 0)
                return 2;
            ours = hold_left();
            (void)pthread_join(other, NULL);
        }
    }
    (void)printf("freed\n");
    return ours && theirs ? 0 : 1;
}
