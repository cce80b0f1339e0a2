/* doctor_software.c: interpreters, symbols, and what this command was built with. */
#include "cli/doctor.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <zlib.h>

#include <sonde/sonde.h>

enum { PYTHONS = 8, PATH_LEN = 512 };

/* ---- Python --------------------------------------------------------------------------- */

/* "python3", "python3.12", not "python3-config". */
static bool is_python(const char *name)
{
    if (strncmp(name, "python3", 7) != 0)
        return false;
    const char *rest = name + 7;
    return !*rest || (*rest == '.' && rest[1] &&
                      strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

struct pythons {
    char path[PYTHONS][PATH_LEN], real[PYTHONS][PATH_LEN];
    unsigned count;
};

/* The same interpreter has several names. */
static void take_python(struct pythons *list, const char *dir, const char *name)
{
    char path[PATH_LEN], real[4096];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
        access(path, X_OK) != 0 || !realpath(path, real) || list->count == PYTHONS)
        return;
    for (unsigned i = 0; i < list->count; i++)
        if (strncmp(list->real[i], real, PATH_LEN - 1) == 0)
            return;
    (void)snprintf(list->path[list->count], PATH_LEN, "%s", path);
    (void)snprintf(list->real[list->count++], PATH_LEN, "%.511s", real);
}

static void find_pythons(struct pythons *ret_list)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : "/usr/bin");
    char *save = NULL;
    ret_list->count = 0;
    for (char *dir = copy ? strtok_r(copy, ":", &save) : NULL; dir;
         dir = strtok_r(NULL, ":", &save)) {
        DIR *d = opendir(dir);
        for (const struct dirent *e; d && (e = readdir(d));)
            if (is_python(e->d_name))
                take_python(ret_list, dir, e->d_name);
        if (d)
            (void)closedir(d);
    }
    free(copy);
}

/* Asks an interpreter; torch is only looked up, not imported: that takes seconds. */
static bool ask_python(char *path, char *ret_version, char *ret_torch, size_t len)
{
    char isolated[] = "-I", command[] = "-c";
    char code[] = "import sys, importlib.metadata as m\n"
                  "try: t = m.version('torch')\n"
                  "except Exception: t = '-'\n"
                  "print('%d.%d.%d%s' % (*sys.version_info[:3],"
                  " getattr(sys, 'abiflags', '')), t)\n";
    char *argv[] = { path, isolated, command, code, NULL };
    char said[256], version[64], torch[64];
    if (doctor_run(argv, false, said, sizeof said) != 0 ||
        sscanf(said, "%63s %63s", version, torch) != 2)
        return false;
    (void)snprintf(ret_version, len, "%s", version);
    (void)snprintf(ret_torch, len, "%s", torch);
    return true;
}

/* What src/capture/sample has tables for. */
static bool is_known(const char *version)
{
    unsigned major = 0, minor = 0;
    return sscanf(version, "%u.%u", &major, &minor) == 2 && major == 3 && minor >= 9 &&
           minor <= 14 && !strchr(version, 't');
}

struct interpreters {
    char versions[160], torches[160], unknown[160];
};

static void append(char *text, size_t size, const char *word)
{
    const size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s%s", used ? ", " : "", word);
}

/* Both rows want the same answers: asked once. */
static const struct interpreters *interpreters(void)
{
    static struct interpreters all;
    static bool asked;
    if (asked)
        return &all;
    asked = true;
    static struct pythons list;
    find_pythons(&list);
    for (unsigned i = 0; i < list.count; i++) {
        char version[64], torch[64], both[160];
        if (!ask_python(list.path[i], version, torch, sizeof version))
            continue;
        append(all.versions, sizeof all.versions, version);
        if (!is_known(version))
            append(all.unknown, sizeof all.unknown, version);
        (void)snprintf(both, sizeof both, "%s (Python %s)", torch, version);
        if (strcmp(torch, "-") != 0)
            append(all.torches, sizeof all.torches, both);
    }
    return &all;
}

static void probe_python(const struct doctor_roots *roots, struct doctor_answer *a)
{
    const struct interpreters *i = interpreters();
    (void)roots;
    if (!i->versions[0]) {
        doctor_found(a, DOCTOR_UNAVAILABLE, "no python3 in PATH");
        doctor_why(a, "plain programs only");
        return;
    }
    doctor_found(a, i->unknown[0] ? DOCTOR_LIMITED : DOCTOR_OK, "%s", i->versions);
    if (i->unknown[0])
        doctor_why(a,
                   "the frames of %.80s are not known to Sonde: no Python stacks there",
                   i->unknown);
}

static void probe_torch(const struct doctor_roots *roots, struct doctor_answer *a)
{
    const struct interpreters *i = interpreters();
    (void)roots;
    if (i->torches[0]) {
        doctor_found(a, DOCTOR_OK, "%s", i->torches);
        return;
    }
    doctor_found(a, DOCTOR_UNAVAILABLE, "not installed for any python3 in PATH");
    doctor_why(a, "needed only by programs that use it");
    doctor_fix(a, "pip install torch");
}

/* ---- Symbols, libraries ------------------------------------------------------------------- */

static void probe_symbols(const struct doctor_roots *roots, struct doctor_answer *a)
{
    (void)roots;
#ifdef SONDE_HAVE_DW
    const char *servers = getenv("DEBUGINFOD_URLS");
    const bool files = access("/usr/lib/debug/.build-id", F_OK) == 0 ||
                       access("/usr/lib/debug/usr", F_OK) == 0;
    if (files || (servers && *servers)) {
        doctor_found(a, DOCTOR_OK, "elfutils%s%s",
                     files ? ", debug files in /usr/lib/debug" : "",
                     servers && *servers ? ", debuginfod" : "");
        return;
    }
    doctor_found(a, DOCTOR_LIMITED, "elfutils; no separate debug files");
    doctor_why(a, "lines only of programs built with -g; functions of all");
    doctor_fix(a, "apt install libc6-dbg, or export DEBUGINFOD_URLS=…");
#else
    doctor_found(a, DOCTOR_LIMITED, "elfutils was not there when this was built");
    doctor_why(a, "native stacks show modules and offsets, no functions and lines");
    doctor_fix(a, "apt install libdw-dev, then build again");
#endif
}

static void probe_build(const struct doctor_roots *roots, struct doctor_answer *a)
{
    (void)roots;
#ifdef SONDE_HAVE_ZSTD
    const char *zstd = ", zstd";
#else
    const char *zstd = "";
#endif
#ifdef SONDE_HAVE_DW
    const char *elf = ", elfutils";
#else
    const char *elf = "";
#endif
#ifdef __clang__
    const char *compiler = __VERSION__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    doctor_found(a, DOCTOR_OK, "sonde %s, %s, jansson %s, zlib %s%s%s", SONDE_VERSION,
                 compiler, JANSSON_VERSION, zlibVersion(), zstd, elf);
}

const struct doctor_check doctor_software[] = {
    { "python", "Python", false, probe_python },
    { "torch", "torch", false, probe_torch },
    { "symbols", "symbols", false, probe_symbols },
    { "build", "built with", false, probe_build },
    { 0 },
};
