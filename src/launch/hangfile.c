/* hangfile.c: what every process of a run is doing, written down. */
#include "launch/hangfile.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/redact.h"
#include "trace/control.h"
#include "trace/reader.h"

enum { THREADS_MAX = 256, PART_MAX = 1 << 16, MAPS_MAX = 4 << 20 };

hangfile_stack_fn *hangfile_user_stack;

/* ---- Zones -------------------------------------------------------------------------- */

struct zones {
    FILE *out; /* NULL: only look */
    pid_t pid; /* 0: of every process */
    char *innermost;
    size_t len;
    bool any;
};

static void take_lane(struct zones *z, const struct trace *trace,
                      const struct trace_lane *lane)
{
    if (lane->open_count == 0)
        return;
    const struct trace_site *inner = trace_site(trace,
                                                lane->open[lane->open_count - 1].site);
    if (z->innermost && (!z->any || lane->is_main))
        (void)snprintf(z->innermost, z->len, "%s", inner->name);
    z->any = true;
    if (!z->out)
        return;
    (void)fprintf(z->out, "  zones of thread %u:", lane->tid);
    for (unsigned i = 0; i < lane->open_count; i++)
        (void)fprintf(z->out, "%s %s", i ? " >" : "",
                      trace_site(trace, lane->open[i].site)->name);
    (void)fputc('\n', z->out);
}

static void take_trace(struct zones *z, const char *path)
{
    struct trace *trace;
    if (trace_open(path, NULL, &trace) < 0)
        return;
    const struct trace_info *info = trace_info(trace);
    if (info->alive && (z->pid == 0 || (pid_t)info->pid == z->pid))
        for (unsigned i = 0; i < trace_lane_count(trace); i++)
            if (trace_lane(trace, i))
                take_lane(z, trace, trace_lane(trace, i));
    trace_free(trace);
}

static void take_run(struct zones *z, const char *dir)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".sonde") != 0 ||
            strcmp(e->d_name, "control.sonde") == 0)
            continue;
        struct buf path = BUF_INIT;
        path_join(&path, dir, e->d_name);
        if (path.error == 0)
            take_trace(z, path.data);
        buf_release(&path);
    }
    if (d)
        (void)closedir(d);
}

bool hangfile_zones_open(const char *dir, char *ret_zone, size_t len)
{
    struct zones z = { .innermost = ret_zone, .len = len };
    ret_zone[0] = '\0';
    take_run(&z, dir);
    return z.any;
}

/* ---- Threads -------------------------------------------------------------------------- */

/* Appends a file of a thread as one line each, indented; nothing when it is closed. */
static bool put_part(FILE *out, const char *task, const char *name, const char *label)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    path_join(&path, task, name);
    const bool there = path.error == 0 &&
                       file_read_all(path.data, PART_MAX, &text) == 0 && text.len > 0;
    char *save = NULL;
    for (char *line = there ? strtok_r(text.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        (void)fprintf(out, "    %s %s\n", label, line);
    buf_release(&path);
    buf_release(&text);
    return there;
}

/* The module an address is in, from /proc/PID/maps, and the offset in its file. */
static void put_place(FILE *out, char *maps, uint64_t address)
{
    for (char *line = maps; line && *line;) {
        uint64_t from, to, offset;
        int at = 0;
        char *end = strchr(line, '\n');
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &from,
                   &to, &offset, &at) == 3 &&
            address >= from && address < to && at > 0) {
            const int len = (int)strcspn(line + at, "\n");
            (void)fprintf(out, "    at %#" PRIx64 " %.*s+%#" PRIx64 "\n", address, len,
                          line + at, address - from + offset);
            return;
        }
        line = end ? end + 1 : NULL;
    }
    (void)fprintf(out, "    at %#" PRIx64 "\n", address);
}

/* "202 0x7f… … 0xSP 0xPC": the last two are registers. "running" has none. */
static void put_call(FILE *out, const char *task, char *maps)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    path_join(&path, task, "syscall");
    if (path.error == 0 && file_read_all(path.data, PART_MAX, &text) == 0) {
        text.data[strcspn(text.data, "\n")] = '\0';
        (void)fprintf(out, "    system call %s\n", text.data);
        const char *pc = strrchr(text.data, ' ');
        if (pc && isdigit((unsigned char)text.data[0]))
            put_place(out, maps, strtoull(pc + 1, NULL, 16));
    }
    buf_release(&path);
    buf_release(&text);
}

static void put_thread(FILE *out, const char *task, pid_t pid, pid_t tid, char *maps)
{
    struct buf path = BUF_INIT, name = BUF_INIT;
    path_join(&path, task, "stat");
    char state = '?';
    if (path.error == 0 && file_read_all(path.data, PART_MAX, &name) == 0) {
        const char *shut = strrchr(name.data, ')');
        if (shut && shut[1] == ' ')
            state = shut[2];
        const char *open = strchr(name.data, '(');
        if (open && shut)
            (void)fprintf(out, "  thread %d %.*s state %c\n", (int)tid,
                          (int)(shut - open + 1), open, state);
    }
    (void)put_part(out, task, "wchan", "waits in");
    put_call(out, task, maps);
    (void)put_part(out, task, "stack", "kernel");
    if (hangfile_user_stack)
        hangfile_user_stack(pid, tid, out);
    buf_release(&path);
    buf_release(&name);
}

/* ---- Processes --------------------------------------------------------------------------- */

static void put_command(FILE *out, const char *proc)
{
    struct buf path = BUF_INIT, text = BUF_INIT, clean = BUF_INIT;
    path_join(&path, proc, "cmdline");
    if (path.error == 0 && file_read_all(path.data, PART_MAX, &text) == 0) {
        for (size_t i = 0; i + 1 < text.len; i++)
            if (text.data[i] == '\0')
                text.data[i] = ' ';
        redact_text(&clean, text.data);
        (void)fprintf(out, "  command %s\n", clean.data);
    }
    buf_release(&path);
    buf_release(&text);
    buf_release(&clean);
}

static void put_threads(FILE *out, const char *proc, pid_t pid)
{
    struct buf tasks = BUF_INIT, path = BUF_INIT, maps = BUF_INIT;
    path_join(&path, proc, "maps");
    (void)file_read_all(path.data, MAPS_MAX, &maps);
    path_join(&tasks, proc, "task");
    DIR *d = tasks.error ? NULL : opendir(tasks.data);
    unsigned count = 0;
    for (const struct dirent *e; d && count < THREADS_MAX && (e = readdir(d));) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        buf_clear(&path);
        path_join(&path, tasks.data, e->d_name);
        put_thread(out, path.data, pid, (pid_t)strtol(e->d_name, NULL, 10), maps.data);
        count++;
    }
    if (d)
        (void)closedir(d);
    buf_release(&tasks);
    buf_release(&path);
    buf_release(&maps);
}

static void put_process(FILE *out, const char *dir, const struct kin *kin,
                        const struct kin_process *p)
{
    char proc[128];
    struct zones z = { .out = out, .pid = (pid_t)p->pid };
    (void)snprintf(proc, sizeof proc, "%s/%u", kin->proc, p->pid);
    (void)fprintf(out, "process %u (%s), child of %u, %.1f MiB\n", p->pid, p->comm,
                  p->parent, (double)p->rss / 1048576);
    put_command(out, proc);
    take_run(&z, dir);
    put_threads(out, proc, (pid_t)p->pid);
    (void)fputc('\n', out);
}

int hangfile_write(const char *dir, unsigned number, const char *why,
                   const struct kin *kin)
{
    struct buf path = BUF_INIT;
    char name[32];
    (void)snprintf(name, sizeof name, "hang-%u.txt", number);
    path_join(&path, dir, name);
    const int fd = path.error ? -1
                              : open(path.data,
                                     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    int rc = out ? 0 : path.error ? path.error : -errno;
    if (out) {
        (void)fprintf(out, "%s\n\n", why);
        for (size_t i = 0; i < kin->count; i++)
            if (kin->process[i].alive)
                put_process(out, dir, kin, &kin->process[i]);
        if (fclose(out) != 0)
            rc = -errno;
    } else if (fd >= 0) {
        (void)close(fd);
    }
    buf_release(&path);
    return rc;
}
