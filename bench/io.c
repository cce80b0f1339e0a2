// link: none
/* io.c: what counting files costs a call.
 *
 *     io op=read      read of 4 KiB that is cached, position by position
 *     io op=pread     the same with an offset
 *     io op=write     write of 4 KiB to /dev/null
 *     io op=fread     fread of 64 bytes      io op=fgets   a line of 80
 *     io op=getc      one character          io op=fputs   a line of 80
 *     io op=open      open and close
 *     threads=0       1: the process has a second thread, which does nothing
 *     owner=1         0: the file was first read by another thread (locked additions)
 *     calls=200000 (per pass)  passes=11  file=PATH (made, gone afterwards)
 *
 * The floor is the same loop through libc's own functions, looked up in libc itself, so
 * that floor and subject alternate in one process. Without libsonde-preload.so both are
 * the same.
 */
#include "measure.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>

enum { BLOCK = 4096, BLOCKS = 256, LINE = 80 };

static int fd;
static FILE *file;
static const char *path;
static char block[BLOCK];

/* The same names once as the program sees them, once as libc has them. */
static struct calls {
    ssize_t (*read)(int, void *, size_t);
    ssize_t (*pread)(int, void *, size_t, off_t);
    ssize_t (*write)(int, const void *, size_t);
    size_t (*fread)(void *, size_t, size_t, FILE *);
    char *(*fgets)(char *, int, FILE *);
    int (*fgetc)(FILE *);
    int (*fputs)(const char *, FILE *);
    int (*open)(const char *, int, ...);
    int (*close)(int);
    off_t (*lseek)(int, off_t, int);
    void (*rewind)(FILE *);
} real, seen = { read,  pread, write, fread, fgets, fgetc,
                 fputs, open,  close, lseek, rewind };

static void find_real(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!libc)
        die("libc.so.6", dlerror());
#define FIND(name) *(void **)&real.name = dlsym(libc, #name)
    FIND(read);
    FIND(pread);
    FIND(write);
    FIND(fread);
    FIND(fgets);
    FIND(fgetc);
    FIND(fputs);
    FIND(open);
    FIND(close);
    FIND(lseek);
    FIND(rewind);
}

/* ---- Loops ------------------------------------------------------------------ */

static void read_with(const struct calls *c, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        if (c->read(fd, block, BLOCK) < BLOCK)
            (void)real.lseek(fd, 0, SEEK_SET);
}

static void pread_with(const struct calls *c, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        (void)!c->pread(fd, block, BLOCK, (off_t)(i % BLOCKS) * BLOCK);
}

static void write_with(const struct calls *c, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        (void)!c->write(fd, block, BLOCK);
}

static void fread_with(const struct calls *c, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        if (c->fread(block, 1, 64, file) < 64)
            c->rewind(file);
}

static void fgets_with(const struct calls *c, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        if (!c->fgets(block, BLOCK, file))
            c->rewind(file);
}

static void getc_with(const struct calls *c, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        if (c->fgetc(file) == EOF)
            c->rewind(file);
}

static void fputs_with(const struct calls *c, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        (void)c->fputs("a line of some eighty characters, as programs write them into "
                       "their log files.\n",
                       file);
}

static void open_with(const struct calls *c, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        (void)c->close(c->open(path, O_RDONLY));
}

#define OP(name)                                                                       \
    MEASURED static void name##_real(unsigned long n)                                  \
    {                                                                                  \
        name##_with(&real, n);                                                         \
    }                                                                                  \
    MEASURED static void name##_seen(unsigned long n)                                  \
    {                                                                                  \
        name##_with(&seen, n);                                                         \
    }
OP(read)
OP(pread)
OP(write)
OP(fread)
OP(fgets)
OP(getc)
OP(fputs)
OP(open)

static const struct op {
    const char *name;
    loop_fn *real, *seen;
    bool stream, writes;
} ops[] = {
    { "read", read_real, read_seen, false, false },
    { "pread", pread_real, pread_seen, false, false },
    { "write", write_real, write_seen, false, true },
    { "fread", fread_real, fread_seen, true, false },
    { "fgets", fgets_real, fgets_seen, true, false },
    { "getc", getc_real, getc_seen, true, false },
    { "fputs", fputs_real, fputs_seen, true, true },
    { "open", open_real, open_seen, false, false },
};

static const struct op *op_named(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    die(name, "no such op");
}

/* ---- What they work on --------------------------------------------------------- */

static void make_file(void)
{
    FILE *f = fopen(path, "w");
    for (int i = 0; f && i < BLOCK * BLOCKS / LINE + 1; i++)
        (void)fprintf(f, "%0*d\n", LINE - 1, i);
    if (!f || fclose(f) != 0)
        die(path, "cannot be written");
}

static const struct op *op;

static void *open_it(void *unused)
{
    fd = open(path, op->writes ? O_WRONLY : O_RDONLY);
    file = op->stream ? fopen(path, op->writes ? "w" : "r") : NULL;
    return unused;
}

static void *sleep_on(void *unused)
{
    (void)pause();
    return unused;
}

int main(int argc, char **argv)
{
    (void)argc;
    static struct passes p;
    pthread_t thread;
    op = op_named(argument(argv, "op", "read"));
    path = argument(argv, "file", "/dev/shm/sonde-bench-io");
    find_real();
    make_file();
    if (op->writes)
        path = "/dev/null";
    pin(0, 0);
    if (argument_number(argv, "owner", 1))
        (void)open_it(NULL);
    else if (pthread_create(&thread, NULL, open_it, NULL) != 0 ||
             pthread_join(thread, NULL) != 0)
        die("pthread_create", "no more threads");
    if (argument_number(argv, "threads", 0) &&
        pthread_create(&thread, NULL, sleep_on, NULL) != 0)
        die("pthread_create", "no more threads");
    const unsigned long calls = argument_number(argv, "calls", 200000);
    op->seen(calls / 10 + 1);
    alternate(&p, (unsigned)argument_number(argv, "passes", 11), calls, op->real,
              op->seen);
    put_passes(&p);
    put_number("calls", (double)calls);
    put_end();
    (void)unlink(argument(argv, "file", "/dev/shm/sonde-bench-io"));
    return 0;
}
