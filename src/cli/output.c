/* output.c: where a verb's answer goes. */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/cli.h"

/* ".NAME.XXXXXX" in the directory of `path`: rename needs the same file system. */
static char *temporary_name(const char *path)
{
    struct buf parent = BUF_INIT;
    struct buf name = BUF_INIT;
    struct buf whole = BUF_INIT;
    path_parent(&parent, path);
    buf_printf(&name, ".%s.XXXXXX", path_base(path));
    path_join(&whole, parent.data, name.data);
    char *text = parent.error || name.error ? NULL : buf_steal(&whole);
    buf_release(&parent);
    buf_release(&name);
    buf_release(&whole);
    return text;
}

static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* What an interrupt leaves behind must not look like an answer: the file beside is taken
 * away, then the signal does what it would have done. One at a time is enough: verbs write
 * one file. */
static const char *volatile unfinished;

static void on_interrupt(int number)
{
    const char *path = unfinished;
    if (path)
        (void)unlink(path);
    (void)raise(number); /* SA_RESETHAND: now it ends the process */
}

static void watch_interrupts(const char *temporary)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction before, ours = { .sa_handler = on_interrupt,
                                      .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };
    unfinished = temporary;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &ours, NULL);
}

/* The file, which an interrupt takes away from the moment it is there; or -errno. */
static int make_watched(char *temporary)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    const int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    const int rc = fd < 0 ? -errno : fd;
    if (fd >= 0)
        watch_interrupts(temporary);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int open_file(struct output *out)
{
    if (is_special(out->path)) {
        out->file = fopen(out->path, "we");
        return out->file ? 0 : -errno;
    }
    out->temporary = temporary_name(out->path);
    if (!out->temporary)
        return -ENOMEM;
    const int fd = make_watched(out->temporary);
    if (fd < 0)
        return fd;
    out->file = fdopen(fd, "w");
    if (out->file)
        return 0;
    const int rc = -errno;
    (void)close(fd);
    (void)unlink(out->temporary);
    unfinished = NULL;
    return rc;
}

bool output_open(struct output *ret_output, const char *path)
{
    struct output out = { .file = stdout };
    if (path && strcmp(path, "-") != 0) {
        out.path = path;
        const int rc = open_file(&out);
        if (rc < 0) {
            cli_error("cannot write '%s': %s (try another -o FILE)", path,
                      error_text(rc));
            free(out.temporary);
            return false;
        }
    }
    *ret_output = out;
    return true;
}

bool output_possible(const char *path)
{
    struct stat st;
    struct output out;
    /* Pipes and devices are left alone: opening one may wait for its other end. */
    if (path && stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return true;
    if (!output_open(&out, path))
        return false;
    output_cancel(&out);
    return true;
}

static int finish_file(struct output *out, int rc)
{
    if (rc == 0 && fflush(out->file) != 0)
        rc = -errno;
    if (rc == 0 && out->temporary && fsync(fileno(out->file)) != 0)
        rc = -errno;
    if (fclose(out->file) != 0 && rc == 0)
        rc = -errno;
    if (out->temporary && rc == 0 && rename(out->temporary, out->path) != 0)
        rc = -errno;
    if (out->temporary && rc < 0)
        (void)unlink(out->temporary);
    if (out->temporary && unfinished == out->temporary)
        unfinished = NULL;
    free(out->temporary);
    return rc;
}

bool output_close(struct output *output, int rc, const char *what)
{
    if (output->path)
        rc = finish_file(output, rc);
    else if (rc == 0 && fflush(stdout) != 0)
        rc = -errno;
    if (rc == -EPIPE) /* `| head` has what it wanted */
        return true;
    if (rc < 0)
        cli_error("cannot write %s to '%s': %s", what,
                  output->path ? output->path : "the standard output", error_text(rc));
    return rc == 0;
}

void output_cancel(struct output *output)
{
    if (output->path)
        (void)finish_file(output, SONDE_E_STATE);
}
