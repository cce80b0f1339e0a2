#include "base/signame.h"
#include "launch/signals.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/process.h"
#include "trace/file.h"
#include "unit.h"

static void names_are_the_usual_ones(void **state)
{
    (void)state;
    char text[SIGNAL_NAME_LEN];
    assert_string_equal(signal_name(SIGKILL, text), "SIGKILL");
    assert_string_equal(signal_name(SIGSEGV, text), "SIGSEGV");
    assert_string_equal(signal_name(SIGRTMIN + 3, text), "SIGRTMIN+3");
    assert_string_equal(signal_name(999, text), "signal 999");
    for (int s = 1; s < 32; s++)
        assert_int_equal(strncmp(signal_name(s, text), "SIG", 3), 0);
}

static siginfo_t sent(int signal, int code, pid_t sender)
{
    siginfo_t info = { .si_signo = signal, .si_code = code };
    info.si_pid = sender;
    return info;
}

static void what_the_terminal_sends_is_not_passed_on(void **state)
{
    (void)state;
    const pid_t child = 1000000; /* nobody */
    siginfo_t info = sent(SIGINT, SI_KERNEL, 0);
    assert_false(signal_was_meant_for(&info, child));
    info = sent(SIGTSTP, SI_KERNEL, 0);
    assert_false(signal_was_meant_for(&info, child));
    info = sent(SIGALRM, SI_KERNEL, 0);
    assert_true(signal_was_meant_for(&info, child));
    info = sent(SIGINT, SI_USER, getppid());
    assert_true(signal_was_meant_for(&info, child));
    info = sent(SIGCHLD, SI_USER, getppid());
    assert_false(signal_was_meant_for(&info, child));
}

static void what_the_program_itself_sends_is_not_returned(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    siginfo_t info = sent(SIGTERM, SI_USER, child);
    assert_false(signal_was_meant_for(&info, child));
    info = sent(SIGTERM, SI_USER, getpid());
    assert_true(signal_was_meant_for(&info, child));
    assert_true(process_descends_from(child, getpid()));
    assert_false(process_descends_from(getpid(), child));
    assert_true(process_alive(child, process_start_ticks((uint32_t)child)));
    assert_false(process_alive(child, 1));
    const uint64_t start = process_start_ticks((uint32_t)child);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    assert_false(process_alive(child, start));
}

/* In a process of its own: signals are process-wide. */
static int taken_and_given_back(void)
{
    struct signals found;
    struct sigaction action;
    sigset_t mask;
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGCHLD, SIG_IGN);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGUSR1);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);

    signals_take(&found);
    (void)sigaction(SIGCHLD, NULL, &action);
    if (action.sa_handler != SIG_DFL)
        return 1;
    if (signals_waiting(&found))
        return 2;
    (void)kill(getpid(), SIGHUP);
    if (signals_waiting(&found))
        return 3; /* it was ignored when we came */
    (void)kill(getpid(), SIGTERM);
    if (!signals_waiting(&found))
        return 4;
    const struct timespec now = { 0, 0 };
    sigset_t taken;
    signals_taken(&taken);
    while (sigtimedwait(&taken, NULL, &now) > 0)
        ;

    signals_give_back(&found);
    (void)sigaction(SIGCHLD, NULL, &action);
    if (action.sa_handler != SIG_IGN)
        return 5;
    (void)sigaction(SIGPIPE, NULL, &action);
    if (action.sa_handler != SIG_DFL)
        return 6;
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    if (sigismember(&mask, SIGUSR1) != 1 || sigismember(&mask, SIGTERM) != 0)
        return 7;
    return 0;
}

static int in_child(int (*fn)(void))
{
    const pid_t child = fork();
    if (child == 0)
        _exit(fn());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void signals_are_given_back_as_they_were_found(void **state)
{
    (void)state;
    assert_int_equal(in_child(taken_and_given_back), 0);
}

static int die_in_spite_of_everything(void)
{
    struct signals found;
    (void)signal(SIGTERM, SIG_IGN);
    signals_take(&found);
    signal_die_by(SIGTERM);
    return 1;
}

static void dying_by_a_signal_needs_no_preparation(void **state)
{
    (void)state;
    const int status = in_child(die_in_spite_of_everything);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_the_usual_ones),
        cmocka_unit_test(what_the_terminal_sends_is_not_passed_on),
        cmocka_unit_test(what_the_program_itself_sends_is_not_returned),
        cmocka_unit_test(signals_are_given_back_as_they_were_found),
        cmocka_unit_test(dying_by_a_signal_needs_no_preparation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
