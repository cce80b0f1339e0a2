/* procs.c: see procs.h. */
#include "capture/sample/procs.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "trace/process.h"

/* ---- Files ------------------------------------------------------------------------------ */

static bool is_file(const char *path)
{
    static const char *const not [] = { "//anon",         "/memfd:", "/dev/zero",
                                        "/anon_hugepage", "/SYSV",   "/[aio]" };
    if (path[0] != '/')
        return false;
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        if (strncmp(path, not [i], strlen(not [i])) == 0)
            return false;
    return true;
}

static struct code_file *enter_file(struct procs *p, const struct stack_module_row *row,
                                    const char *path)
{
    struct buf key = BUF_INIT;
    bool added = false;
    buf_append(&key, row->build_id, row->build_id_len);
    buf_printf(&key, "|%u|%llu|%s", row->pid, (unsigned long long)row->inode, path);
    struct strmap_entry *e = key.error
                                 ? NULL
                                 : strmap_enter(&p->files, key.data, key.len, &added);
    buf_release(&key);
    if (!e)
        return NULL;
    if (added) {
        struct code_file *f = calloc(1, sizeof *f);
        char *copy = f ? strdup(path) : NULL;
        if (!copy) {
            free(f);
            return NULL;
        }
        *f = (struct code_file){ .number = UINT32_MAX, .pid = row->pid, .path = copy };
        f->number = stacktab_module(p->tab, row, path);
        e->ptr = f;
    }
    return e->ptr;
}

struct code_file *procs_special(struct procs *p, const char *name)
{
    return enter_file(p, &(struct stack_module_row){ 0 }, name);
}

struct code_file *procs_jit(struct procs *p, struct proc *proc)
{
    if (!proc->jit)
        proc->jit = enter_file(p, &(struct stack_module_row){ .pid = proc->pid }, "");
    return proc->jit;
}

/* The image ends with its section headers. */
static size_t vdso_len(const void *image)
{
    Elf64_Ehdr h;
    memcpy(&h, image, sizeof h);
    return h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
}

static int open_cfi(const char *path, struct cfi **ret_cfi)
{
    if (strcmp(path, "[vdso]") == 0) {
        const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
        return image ? cfi_open(-1, image, vdso_len(image), ret_cfi) : -ENOENT;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    struct stat st;
    int rc = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? cfi_open(fd, NULL, 0, ret_cfi)
                                                        : -EINVAL;
    (void)close(fd);
    return rc;
}

const struct cfi *code_file_cfi(struct code_file *f)
{
    if (!f->cfi_tried) {
        f->cfi_tried = true;
        if (!f->pid && open_cfi(f->path, &f->cfi) < 0)
            f->cfi = NULL;
    }
    return f->cfi;
}

/* ---- Processes ---------------------------------------------------------------------------- */

static struct proc *find_proc(const struct procs *p, uint32_t pid)
{
    for (size_t i = p->count; i-- > 0;)
        if (p->list[i]->pid == pid)
            return p->list[i];
    return NULL;
}

struct proc *procs_get(struct procs *p, uint32_t pid)
{
    struct proc *found = find_proc(p, pid);
    if (found || p->count >= PROCS_MAX)
        return found;
    if (p->count == p->cap) {
        const size_t cap = p->cap ? p->cap * 2 : 16;
        struct proc **list = realloc(p->list, cap * sizeof *list);
        if (!list)
            return NULL;
        p->list = list;
        p->cap = cap;
    }
    struct proc *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return NULL;
    fresh->pid = pid;
    fresh->threads = 1;
    fresh->asked = p->asked;
    p->list[p->count++] = fresh;
    return fresh;
}

static void free_proc(struct proc *proc)
{
    free(proc->maps);
    free(proc);
}

static void drop_proc(struct procs *p, uint32_t pid)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->list[i]->pid == pid) {
            free_proc(p->list[i]);
            p->list[i] = p->list[--p->count];
            return;
        }
}

int procs_init(struct procs *p, struct stacktab *tab)
{
    *p = (struct procs){ .tab = tab, .thread_mask = 1023 };
    strmap_init(&p->files);
    p->threads = calloc(p->thread_mask + 1, sizeof *p->threads);
    return p->threads ? 0 : -ENOMEM;
}

void procs_release(struct procs *p)
{
    for (size_t i = 0; i < p->count; i++)
        free_proc(p->list[i]);
    for (size_t i = 0; i < p->files.count; i++) {
        struct code_file *f = p->files.entries[i].ptr;
        if (f) {
            cfi_free(f->cfi);
            free(f->path);
            free(f);
        }
    }
    free(p->list);
    free(p->threads);
    strmap_release(&p->files);
    *p = (struct procs){ .tab = NULL };
}

/* ---- Mappings ------------------------------------------------------------------------------ */

/* The first mapping that ends behind `address`. */
static size_t map_at(const struct proc *proc, uint64_t address)
{
    size_t low = 0, high = proc->map_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (proc->maps[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct mapping *proc_find(const struct proc *proc, uint64_t address)
{
    const size_t i = map_at(proc, address);
    return i < proc->map_count && proc->maps[i].start <= address ? &proc->maps[i]
                                                                 : NULL;
}

static bool insert_at(struct proc *proc, size_t at, const struct mapping *m)
{
    if (proc->map_count >= PROC_MAPPINGS)
        return false;
    if (proc->map_count == proc->map_cap) {
        const size_t cap = proc->map_cap ? proc->map_cap * 2 : 32;
        struct mapping *maps = realloc(proc->maps, cap * sizeof *maps);
        if (!maps)
            return false;
        proc->maps = maps;
        proc->map_cap = cap;
    }
    memmove(&proc->maps[at + 1], &proc->maps[at],
            (proc->map_count - at) * sizeof *proc->maps);
    proc->maps[at] = *m;
    proc->map_count++;
    return true;
}

/* What was there before gives way. */
static void clear_range(struct proc *proc, uint64_t start, uint64_t end)
{
    size_t i = map_at(proc, start);
    while (i < proc->map_count && proc->maps[i].start < end) {
        struct mapping *m = &proc->maps[i];
        const struct mapping old = *m;
        if (old.start < start) { /* its beginning stays, and perhaps its end */
            m->end = start;
            struct mapping rest = old;
            rest.start = end;
            rest.file_offset += end - old.start;
            if (old.end > end && !insert_at(proc, i + 1, &rest))
                return;
            i++;
        } else if (old.end > end) {
            m->file_offset += end - m->start;
            m->start = end;
            return;
        } else {
            memmove(m, m + 1, (proc->map_count - i - 1) * sizeof *m);
            proc->map_count--;
        }
    }
}

void procs_on_map(struct procs *p, uint32_t pid, const struct mapped_file *file)
{
    struct proc *proc = procs_get(p, pid);
    if (!proc || file->len == 0 || file->start > UINT64_MAX - file->len)
        return;
    struct mapping m = { .start = file->start,
                         .end = file->start + file->len,
                         .file_offset = file->file_offset };
    struct stack_module_row row = { .inode = file->inode };
    if (file->build_id_len && file->build_id_len <= MODULE_BUILD_ID_MAX) {
        row.build_id_len = (uint8_t)file->build_id_len;
        memcpy(row.build_id, file->build_id, file->build_id_len);
        row.inode = 0;
    }
    if (is_file(file->path))
        m.file = enter_file(p, &row, file->path);
    else if (strcmp(file->path, "[vdso]") == 0)
        m.file = procs_special(p, "[vdso]");
    else
        m.file = procs_jit(p, proc);
    if (!m.file)
        return;
    if (m.file->pid)
        m.file_offset = m.start; /* generated code is named by address */
    if (strcmp(m.file->path, "[vdso]") == 0)
        m.file_offset = 0;
    clear_range(proc, m.start, m.end);
    (void)insert_at(proc, map_at(proc, m.start), &m);
}

/* What the kernel told of it then is better than what /proc tells now: its build id. */
static bool is_known(const struct procs *p, uint32_t pid, const struct mapped_file *f)
{
    const struct proc *proc = find_proc(p, pid);
    const struct mapping *m = proc ? proc_find(proc, f->start) : NULL;
    return m && m->start == f->start && m->end == f->start + f->len &&
           m->file_offset == f->file_offset && strcmp(m->file->path, f->path) == 0;
}

static void read_map_line(struct procs *p, uint32_t pid, const char *line)
{
    unsigned long long start, end, offset, inode;
    unsigned major, minor;
    char perms[8];
    int at = 0;
    if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, perms, &offset,
               &major, &minor, &inode, &at) < 7 ||
        !at || !strchr(perms, 'x') || end <= start)
        return;
    const struct mapped_file file = { .start = start,
                                      .len = end - start,
                                      .file_offset = offset,
                                      .inode = inode,
                                      .path = line + at };
    if (!is_known(p, pid, &file))
        procs_on_map(p, pid, &file);
}

void procs_take_maps(struct procs *p, uint32_t pid, char *text)
{
    for (char *line = text; line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        read_map_line(p, pid, line);
        line = end;
    }
}

void procs_read_maps(struct procs *p, uint32_t pid)
{
    enum { MOST = 16 << 20 };
    char path[32];
    struct buf text = BUF_INIT;
    (void)snprintf(path, sizeof path, "/proc/%u/maps", pid);
    if (file_read_all(path, MOST, &text) == 0)
        procs_take_maps(p, pid, text.data);
    buf_release(&text);
}

/* ---- Threads -------------------------------------------------------------------------------- */

static struct thread_name *thread_slot(const struct procs *p, uint32_t tid)
{
    size_t i = tid * 0x9e3779b1u & p->thread_mask;
    while (p->threads[i].tid && p->threads[i].tid != tid)
        i = (i + 1) & p->thread_mask;
    return &p->threads[i];
}

static bool grow_threads(struct procs *p)
{
    if (p->thread_count * 2 <= p->thread_mask)
        return true;
    if (p->thread_mask >= THREADS_MAX * 2)
        return false;
    struct procs bigger = *p;
    bigger.thread_mask = p->thread_mask * 2 + 1;
    bigger.threads = calloc(bigger.thread_mask + 1, sizeof *bigger.threads);
    if (!bigger.threads)
        return false;
    for (size_t i = 0; i <= p->thread_mask; i++)
        if (p->threads[i].tid)
            *thread_slot(&bigger, p->threads[i].tid) = p->threads[i];
    free(p->threads);
    p->threads = bigger.threads;
    p->thread_mask = bigger.thread_mask;
    return true;
}

static struct thread_name *get_thread(struct procs *p, uint32_t tid, uint32_t pid)
{
    struct thread_name *t = thread_slot(p, tid);
    if (t->tid)
        return t;
    if (!grow_threads(p))
        return NULL;
    t = thread_slot(p, tid);
    *t = (struct thread_name){ .tid = tid, .pid = pid, .asked = p->asked };
    p->thread_count++;
    return t;
}

/* Entries behind the hole move up, so that none becomes unreachable. */
static void drop_thread(struct procs *p, uint32_t tid)
{
    struct thread_name *t = thread_slot(p, tid);
    if (!t->tid)
        return;
    t->tid = 0;
    p->thread_count--;
    for (size_t i = (size_t)(t - p->threads + 1) & p->thread_mask; p->threads[i].tid;
         i = (i + 1) & p->thread_mask) {
        const struct thread_name moved = p->threads[i];
        p->threads[i].tid = 0;
        *thread_slot(p, moved.tid) = moved;
    }
}

static void set_name(char dst[PROC_NAME], const char *name)
{
    (void)snprintf(dst, PROC_NAME, "%s", name);
}

/* ---- What happens to them --------------------------------------------------------------------- */

void procs_on_fork(struct procs *p, uint32_t pid, uint32_t parent, uint32_t tid,
                   uint32_t parent_tid)
{
    struct thread_name *t = get_thread(p, tid, pid);
    const struct thread_name *from = thread_slot(p, parent_tid);
    if (t && from->tid)
        set_name(t->name, from->name);
    if (t)
        t->pid = pid;
    if (pid == parent) {
        struct proc *proc = procs_get(p, pid);
        if (proc)
            proc->threads++;
        return;
    }
    drop_proc(p, pid); /* the number is used again */
    struct proc *child = procs_get(p, pid);
    const struct proc *old = find_proc(p, parent);
    if (!child || !old)
        return;
    set_name(child->name, old->name);
    child->asked = old->asked;
    for (size_t i = 0; i < old->map_count; i++) {
        struct mapping m = old->maps[i];
        if (m.file->pid)
            m.file = procs_jit(p, child);
        if (m.file)
            (void)insert_at(child, child->map_count, &m);
    }
}

void procs_on_exit(struct procs *p, uint32_t pid, uint32_t tid)
{
    struct proc *proc = find_proc(p, pid);
    drop_thread(p, tid);
    if (proc && --proc->threads == 0)
        drop_proc(p, pid);
}

void procs_on_name(struct procs *p, uint32_t pid, uint32_t tid, const char *name,
                   bool exec)
{
    struct proc *proc = procs_get(p, pid);
    struct thread_name *t = get_thread(p, tid, pid);
    if (t) {
        set_name(t->name, name);
        t->pid = pid;
        t->task = 0;
    }
    if (proc && (exec || !proc->name[0])) /* a main thread renamed is still the same */
        set_name(proc->name, name);
    if (proc && exec) {
        proc->map_count = 0;
        proc->threads = 1; /* exec ends the others */
    }
}

/* ---- What nobody told -------------------------------------------------------------------------- */

enum { ALL_ANEW = 8 }; /* times until everything is asked again */

void procs_ask_anew(struct procs *p)
{
    p->asked++;
    if (p->all_anew == 0 || p->asked - p->all_anew >= ALL_ANEW)
        p->all_anew = p->asked;
    for (size_t i = p->count; i-- > 0;)
        if (kill((pid_t)p->list[i]->pid, 0) < 0 && errno == ESRCH)
            drop_proc(p, p->list[i]->pid);
}

static bool is_generated(const struct proc *proc, uint64_t ip)
{
    for (unsigned i = 0; i < proc->generated_count && i < PROC_GENERATED; i++)
        if (proc->generated[i] == ip >> 16)
            return true;
    return false;
}

/* Asks what is mapped, and notes that a place still has no file. */
static void read_maps_for(struct procs *p, struct proc *proc, uint64_t ip)
{
    procs_read_maps(p, proc->pid);
    if (ip && !proc_find(proc, ip))
        proc->generated[proc->generated_count++ % PROC_GENERATED] = ip >> 16;
}

struct proc *procs_sampled(struct procs *p, uint32_t pid, uint64_t ip)
{
    const bool known = find_proc(p, pid);
    struct proc *proc = procs_get(p, pid);
    if (!proc || p->asked == 0)
        return proc;
    if (!known || proc->asked < p->all_anew) {
        proc->generated_count = 0;
        read_maps_for(p, proc, ip);
    } else if (proc->missed != p->asked && ip && !proc_find(proc, ip) &&
               !is_generated(proc, ip)) {
        proc->missed = p->asked; /* what is mapped from now on the kernel tells */
        read_maps_for(p, proc, ip);
    }
    proc->asked = p->asked;
    if (!proc->name[0])
        process_task_name(pid, pid, proc->name, sizeof proc->name);
    return proc;
}

static void ask_name(const struct procs *p, struct thread_name *t, uint32_t pid)
{
    char name[PROC_NAME];
    t->asked = p->asked;
    process_task_name(pid, t->tid, name, sizeof name);
    if (!name[0] || strcmp(name, t->name) == 0)
        return;
    set_name(t->name, name);
    t->task = 0;
}

uint32_t procs_task(struct procs *p, struct proc *proc, uint32_t tid)
{
    struct thread_name *t = get_thread(p, tid, proc->pid);
    if (!t)
        return stacktab_task(p->tab, proc->pid, proc->name, "");
    if (p->asked > 0 && (t->asked != p->asked || !t->name[0]))
        ask_name(p, t, proc->pid);
    if (t->task == 0)
        t->task = stacktab_task(p->tab, proc->pid, proc->name,
                                t->name[0] ? t->name : proc->name) +
                  1;
    return t->task - 1;
}
