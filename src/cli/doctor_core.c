/* doctor_core.c: what recording itself needs: a clock, a place, the library. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "base/human.h"
#include "launch/place.h"
#include "store/list.h"
#include "trace/clock.h"

static void probe_clock(const struct doctor_roots *roots, struct doctor_answer *a)
{
    char source[64];
    const enum tick_source ticks = ticks_source();
    if (!doctor_read(roots->sys,
                     "devices/system/clocksource/clocksource0/current_clocksource",
                     source, sizeof source))
        (void)snprintf(source, sizeof source, "unknown");
    if (ticks != TICKS_CLOCK_NS) {
        doctor_found(a, DOCTOR_OK, "%s at %.3f GHz, kernel uses %s",
                     ticks == TICKS_TSC ? "invariant TSC" : "CNTVCT", ticks_per_ns(),
                     source);
        return;
    }
    doctor_found(a, DOCTOR_LIMITED, "clock_gettime, kernel uses %s", source);
    doctor_why(a, "no invariant tick counter: each event costs some 20 ns more");
}

/* The nearest directory above a path that exists, for runs that are not there yet. */
static void existing(const char *path, struct buf *ret_dir)
{
    struct buf up = BUF_INIT;
    buf_puts(ret_dir, path);
    while (ret_dir->error == 0 && !path_is_dir(ret_dir->data) &&
           strcmp(ret_dir->data, "/") != 0 && strcmp(ret_dir->data, ".") != 0) {
        buf_clear(&up);
        path_parent(&up, ret_dir->data);
        buf_clear(ret_dir);
        buf_puts(ret_dir, up.data);
    }
    buf_release(&up);
}

/* A file without a name where runs would lie. */
static int open_probe_file(void)
{
    struct buf dir = BUF_INIT;
    existing(store_directory(), &dir);
    int fd = open(dir.data, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0) { /* not every file system knows O_TMPFILE */
        buf_puts(&dir, "/.sonde-doctor-XXXXXX");
        fd = dir.error ? -1 : mkostemp(dir.data, O_CLOEXEC);
        if (fd >= 0)
            (void)unlink(dir.data);
    }
    buf_release(&dir);
    return fd;
}

static void probe_place(const struct doctor_roots *roots, struct doctor_answer *a)
{
    struct buf dir = BUF_INIT;
    struct place place;
    (void)roots;
    existing(store_directory(), &dir);
    int rc = place_of(dir.data, &place);
    const int fd = open_probe_file(); /* asking would not do: root may do anything */
    if (fd < 0 && rc == 0)
        rc = -errno;
    if (fd >= 0)
        (void)close(fd);
    if (rc < 0) {
        doctor_found(a, DOCTOR_UNAVAILABLE, "%.60s cannot be written",
                     store_directory());
        doctor_why(a, "%s", error_text(rc));
        doctor_fix(a, "export SONDE_DIR=DIR, or sonde run -o DIR");
    } else if (place.remote) {
        doctor_found(a, DOCTOR_LIMITED, "%.60s on %s", store_directory(), place.type);
        doctor_why(a,
                   "live files go to local scratch and are brought there at the end");
        doctor_fix(a, "export SONDE_DIR=DIR on a local disk");
    } else {
        doctor_found(a, DOCTOR_OK, "%.60s on %s", store_directory(), place.type);
    }
    buf_release(&dir);
}

static int try_mapping(int fd)
{
    const size_t len = 1 << 16;
    if (fallocate(fd, 0, 0, (off_t)len) < 0)
        return -errno;
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    char byte = 0;
    p[len - 1] = 'x';
    const ssize_t n = pread(fd, &byte, 1, (off_t)len - 1);
    (void)munmap(p, len);
    return n == 1 && byte == 'x' ? 0 : -EIO;
}

static void probe_mapping(const struct doctor_roots *roots, struct doctor_answer *a)
{
    (void)roots;
    const int fd = open_probe_file();
    const int rc = fd < 0 ? -errno : try_mapping(fd);
    if (fd >= 0)
        (void)close(fd);
    if (rc == 0) {
        doctor_found(a, DOCTOR_OK, "space is reserved before it is written");
        return;
    }
    doctor_found(a, DOCTOR_UNAVAILABLE, "no reserved, shared mapping of files");
    doctor_why(a, "fallocate or mmap: %s", error_text(rc));
    doctor_fix(a, "export SONDE_DIR=DIR on a local disk, or SONDE_PLACE=scratch");
}

static void probe_locks(const struct doctor_roots *roots, struct doctor_answer *a)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    (void)roots;
    const int fd = open_probe_file();
    const int rc = fd < 0 ? -errno : fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
    if (fd >= 0)
        (void)close(fd);
    if (rc == 0) {
        doctor_found(a, DOCTOR_OK, "locks of open files work");
        return;
    }
    doctor_found(a, DOCTOR_UNAVAILABLE, "files cannot be locked");
    doctor_why(a, "fcntl: %s", error_text(rc));
    doctor_fix(a, "export SONDE_DIR=DIR on a local disk, or SONDE_PLACE=scratch");
}

static void probe_disk(const struct doctor_roots *roots, struct doctor_answer *a)
{
    struct place place;
    char left[HUMAN_LEN];
    (void)roots;
    if (place_of(store_directory(), &place) < 0) {
        doctor_found(a, DOCTOR_UNAVAILABLE, "free space unknown");
        return;
    }
    const enum doctor_state state = place.free_bytes < (64ULL << 20)
                                        ? DOCTOR_UNAVAILABLE
                                    : place.free_bytes < (2ULL << 30) ? DOCTOR_LIMITED
                                                                      : DOCTOR_OK;
    doctor_found(a, state, "%s free", human_bytes(left, (double)place.free_bytes));
    if (state != DOCTOR_OK) {
        doctor_why(a, "a run may take 1 GiB");
        doctor_fix(a, "sonde run --max-trace 64MiB, or SONDE_DIR elsewhere");
    }
}

static void probe_shm(const struct doctor_roots *roots, struct doctor_answer *a)
{
    struct statvfs s;
    char size[HUMAN_LEN], left[HUMAN_LEN];
    (void)roots;
    if (statvfs("/dev/shm", &s) != 0) {
        doctor_found(a, DOCTOR_LIMITED, "no /dev/shm");
        doctor_why(a, "torch's loader workers need it");
        return;
    }
    const double total = (double)s.f_blocks * (double)s.f_frsize;
    const double rest = (double)s.f_bavail * (double)s.f_frsize;
    const bool small = total < 1 << 30 || rest < 256 << 20;
    doctor_found(a, small ? DOCTOR_LIMITED : DOCTOR_OK, "%s, %s free",
                 human_bytes(size, total), human_bytes(left, rest));
    if (small) {
        doctor_why(a, "batches of loader workers pass through it");
        doctor_fix(a, "docker run --shm-size=8g, or mount -o remount,size=8g /dev/shm");
    }
}

/* ---- The library ------------------------------------------------------------------------ */

static bool find_library(char *ret_path, size_t len)
{
    static const char *const places[] = { "", "/../lib/sonde", "/../lib64/sonde",
                                          "/../lib/x86_64-linux-gnu/sonde" };
    const char *given = getenv("SONDE_PRELOAD_LIBRARY");
    char self[2048];
    if (given && *given) {
        (void)snprintf(ret_path, len, "%s", given);
        return access(ret_path, R_OK) == 0;
    }
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        (void)snprintf(ret_path, len, "%s%s/libsonde-preload.so", self, places[i]);
        if (access(ret_path, R_OK) == 0)
            return true;
    }
    return false;
}

/* The loader complains on stderr and goes on without: so we listen. */
static void probe_preload(const struct doctor_roots *roots, struct doctor_answer *a)
{
    char path[2400], variable[2432], said[256];
    (void)roots;
    if (!find_library(path, sizeof path)) {
        doctor_found(a, DOCTOR_UNAVAILABLE, "libsonde-preload.so was not found");
        doctor_why(a, "no allocations, no file and network calls");
        doctor_fix(a, "make install, or export SONDE_PRELOAD_LIBRARY=PATH");
        return;
    }
    (void)snprintf(variable, sizeof variable, "LD_PRELOAD=%s", path);
    char env[] = "env", program[] = "true";
    char *argv[] = { env, variable, program, NULL };
    const int status = doctor_run(argv, true, said, sizeof said);
    if (status == 0 && !said[0]) {
        doctor_found(a, DOCTOR_OK, "libsonde-preload.so loads");
        return;
    }
    said[strcspn(said, "\n")] = '\0';
    doctor_found(a, DOCTOR_UNAVAILABLE, "libsonde-preload.so does not load");
    doctor_why(a, "%.190s", said[0] ? said : "a program with it failed");
    doctor_fix(a, "sonde run --no-preload");
}

const struct doctor_check doctor_core[] = {
    { "clock", "clock", true, probe_clock },
    { "run_directory", "run directory", true, probe_place },
    { "disk", "disk space", true, probe_disk },
    { "mapping", "mapped files", true, probe_mapping },
    { "locks", "file locks", true, probe_locks },
    { "preload", "preload library", false, probe_preload },
    { "shm", "/dev/shm", false, probe_shm },
    { 0 },
};
