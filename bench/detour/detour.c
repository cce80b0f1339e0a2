/* detour.c: takes a library that stands in front of libc out of a running process, and
 * puts it back: for tools/bench torchloop, which compares a program with itself.
 *
 * Two processes of the same program differ by more than a profiler may cost: pages and
 * caches fall differently each time. So both sides have to be one process. What the
 * loader wrote into the tables of addresses of all objects is looked through once; every
 * word that points into the library is known by its symbol, and may point to the function
 * behind it instead. Off is then what the program is without the library: no call goes
 * through it.
 *
 * Not for anything but benchmarks: what is allocated on one side is freed on the other.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 65536 };

/* Calls for memory, and all others: files and sockets. */
enum { MEMORY = 1, FILES = 2 };

struct slot {
    uintptr_t *at;
    uintptr_t ours, theirs;
    int kind;
    int writable; /* its page is */
};

static struct slot slots[MOST];
static unsigned slot_count;
static uintptr_t low, high; /* where the library lies */
static const char *library;
static void *behind[8]; /* where the functions behind it are looked up */
static unsigned behind_count;

static int is_library(const struct dl_phdr_info *info)
{
    return info->dlpi_name && strstr(info->dlpi_name, library) != NULL;
}

static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!is_library(info))
        return 0;
    low = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        const uintptr_t start = info->dlpi_addr + p->p_vaddr;
        low = start < low ? start : low;
        high = start + p->p_memsz > high ? start + p->p_memsz : high;
    }
    return 1;
}

static uintptr_t function_behind(const char *name)
{
    for (unsigned i = 0; i < behind_count; i++) {
        const uintptr_t found = (uintptr_t)dlsym(behind[i], name);
        if (found && (found < low || found >= high))
            return found;
    }
    return 0;
}

struct dynamic {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * rela[2];
    size_t rela_size[2];
};

static int known(const uintptr_t *at)
{
    for (unsigned i = 0; i < slot_count; i++)
        if (slots[i].at == at)
            return 1;
    return 0;
}

static int kind_of(const char *name)
{
    static const char *const memory[] = {
        "malloc",         "free",          "calloc",   "realloc", "reallocarray",
        "posix_memalign", "aligned_alloc", "memalign", "valloc",  "pvalloc",
    };
    for (unsigned i = 0; i < sizeof memory / sizeof *memory; i++)
        if (strcmp(name, memory[i]) == 0)
            return MEMORY;
    return FILES;
}

static void look_at(const struct dynamic *d, uintptr_t base, const ElfW(Rela) * r)
{
    const unsigned type = ELF64_R_TYPE(r->r_info);
#if defined(__x86_64__)
    const int addresses = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
                          type == R_X86_64_64;
#else
    const int addresses = type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
                          type == R_AARCH64_ABS64;
#endif
    if (!addresses || !ELF64_R_SYM(r->r_info))
        return;
    uintptr_t *at = (uintptr_t *)(base + r->r_offset);
    if (*at < low || *at >= high || slot_count == MOST || known(at))
        return;
    const char *name = d->names + d->symbols[ELF64_R_SYM(r->r_info)].st_name;
    const uintptr_t theirs = function_behind(name);
    if (theirs)
        slots[slot_count++] = (struct slot){ at, *at, theirs, kind_of(name), 0 };
}

static int look_through(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (is_library(info))
        return 0;
    struct dynamic d = { 0 };
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        uintptr_t p = entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            d.symbols = (const void *)p;
        else if (entry->d_tag == DT_STRTAB)
            d.names = (const void *)p;
        else if (entry->d_tag == DT_RELA)
            d.rela[0] = (const void *)p;
        else if (entry->d_tag == DT_RELASZ)
            d.rela_size[0] = p;
        else if (entry->d_tag == DT_JMPREL)
            d.rela[1] = (const void *)p;
        else if (entry->d_tag == DT_PLTRELSZ)
            d.rela_size[1] = p;
    }
    if (!d.symbols || !d.names || (uintptr_t)d.symbols < info->dlpi_addr)
        return 0; /* the loader has not been there: the kernel's own object */
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; d.rela[k] && i < d.rela_size[k] / sizeof *d.rela[k]; i++)
            look_at(&d, info->dlpi_addr, &d.rela[k][i]);
    return 0;
}

/* Looks for words that point into the library; how many are known by now, 0: it is not
 * here. Again after more has been loaded or called for the first time. */
unsigned detour_find(const char *name)
{
    static const char *const others[] = { "libc.so.6", "libm.so.6", "libpthread.so.0",
                                          "libdl.so.2", "librt.so.1" };
    if (!behind_count)
        for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
            if ((behind[behind_count] = dlopen(others[i], RTLD_LAZY | RTLD_NOLOAD)))
                behind_count++;
    library = name;
    if (!dl_iterate_phdr(find_library, NULL))
        return 0;
    (void)dl_iterate_phdr(look_through, NULL);
    return slot_count;
}

/* Calls of these kinds go through the library, others past it. How many words were changed;
 * -1: not to be written. */
int detour_set(int kinds)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int changed = 0;
    for (unsigned i = 0; i < slot_count; i++) {
        const uintptr_t to = kinds & slots[i].kind ? slots[i].ours : slots[i].theirs;
        if (*slots[i].at == to)
            continue;
        void *start = (void *)((uintptr_t)slots[i].at & ~(page - 1));
        if (!slots[i].writable && mprotect(start, page, PROT_READ | PROT_WRITE) < 0)
            return -1;
        slots[i].writable = 1; /* and stays so: else thousands of calls each time */
        __atomic_store_n(slots[i].at, to, __ATOMIC_RELEASE);
        changed++;
    }
    return changed;
}
