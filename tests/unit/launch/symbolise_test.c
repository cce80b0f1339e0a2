// labels: no_asan
/* Names for a run's addresses: right, kept, and no file can harm us. */
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "base/buf.h"
#include "base/files.h"
#include "launch/symbolise.h"
#include "trace/module_rows.h"
#include "trace/symbols.h"
#include "trace/tables.h"

static const struct tables_spec specs[] = {
    { MODULES_TABLE, sizeof(struct module_row), 1000 },
    { FRAMES_TABLE, sizeof(struct frame_row), 10000 },
};

void symbolise_landmark(void);
__attribute__((noinline, used)) void symbolise_landmark(void)
{
    __asm__ volatile("nop");
}

struct source {
    char dir[64];
    struct tables tables;
};

static void source_open(struct source *s)
{
    assert_non_null(unit_temp_dir(s->dir));
    assert_int_equal(tables_create(s->dir, "heap", NULL, specs, 2, &s->tables), 0);
}

static void source_close(struct source *s)
{
    tables_close(&s->tables);
    (void)file_remove_tree(s->dir);
}

static void add_module(struct source *s, uint64_t start, uint64_t end, uint64_t offset,
                       const char *path)
{
    uint32_t index;
    struct module_row *m = tables_append(&s->tables, 1, &index);
    assert_non_null(m);
    m->end = end;
    m->file_offset = offset;
    m->path = tables_text(&s->tables, path, strlen(path));
    __atomic_store_n(&m->start, start, __ATOMIC_RELEASE);
}

static void add_address(struct source *s, uint64_t address)
{
    uint32_t index;
    struct frame_row *f = tables_append(&s->tables, 2, &index);
    assert_non_null(f);
    f->address = address;
}

/* Our own mappings, as the interposer would write them. */
static void add_own_modules(struct source *s)
{
    struct buf maps = BUF_INIT;
    assert_int_equal(file_read_all("/proc/self/maps", 1 << 20, &maps), 0);
    for (char *line = strtok(maps.data, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long start, end, offset;
        char path[512] = "";
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %511s", &start, &end, &offset,
                   path) == 4)
            add_module(s, start, end, offset, path);
    }
    buf_release(&maps);
}

static void addresses_of_any_table_get_names(void **state)
{
    (void)state;
    struct source s;
    struct symbols *symbols;
    struct symbol_name names[SYMBOLS_INLINE_MAX];
    const uint64_t inside = (uint64_t)(uintptr_t)symbolise_landmark + 1;
    const uint64_t of_libc = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "qsort") + 1;
    source_open(&s);
    add_own_modules(&s);
    add_address(&s, inside);
    add_address(&s, of_libc);
    add_address(&s, 0x10); /* nowhere */
    assert_int_equal(symbolise_run(s.dir, NULL), 2);
    assert_int_equal(symbols_open(s.dir, &symbols), 0);
    const char *file = path_base(s.tables.path);
    unsigned n = symbols_find(symbols, file, inside, names, SYMBOLS_INLINE_MAX);
    assert_true(n >= 1);
    assert_string_equal(names[n - 1].function, "symbolise_landmark");
    n = symbols_find(symbols, file, of_libc, names, SYMBOLS_INLINE_MAX);
    assert_true(n >= 1 && strstr(names[n - 1].function, "qsort"));
    assert_int_equal(symbols_find(symbols, file, 0x10, names, 1), 0);
    assert_int_equal(symbols_find(symbols, "other.tables", inside, names, 1), 0);
    symbols_free(symbols);
    source_close(&s);
}

static void a_run_without_addresses_gets_no_file(void **state)
{
    (void)state;
    struct source s;
    struct symbols *symbols;
    source_open(&s);
    assert_int_equal(symbolise_run(s.dir, NULL), 0);
    assert_true(symbols_open(s.dir, &symbols) < 0);
    source_close(&s);
}

/* A copy of this very program with bytes changed everywhere. */
static void write_damaged(const char *path, unsigned seed)
{
    struct buf own = BUF_INIT;
    assert_int_equal(file_read_all("/proc/self/exe", 64 << 20, &own), 0);
    srand(seed);
    for (size_t i = 0; i < own.len / 200 + 20; i++)
        own.data[(size_t)rand() % own.len] = (char)rand();
    for (size_t i = 0; i < 4; i++) /* the headers stay, else nothing is read */
        own.data[i] = "\177ELF"[i];
    if (seed % 3 == 0)
        own.len = own.len * 2 / 3;
    assert_int_equal(file_replace(path, own.data, own.len, 0600), 0);
    buf_release(&own);
}

static void damaged_files_do_not_harm_us(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 12; seed++) {
        struct source s;
        char path[128];
        source_open(&s);
        (void)snprintf(path, sizeof path, "%s/damaged.so", s.dir);
        write_damaged(path, seed);
        add_module(&s, 0x1000, 0x1000000, 0, path);
        add_module(&s, 0x2000000, 0x3000000, 0, "/dev/zero");
        add_module(&s, 0x4000000, 0x5000000, 0, s.dir);
        for (uint64_t a = 0x1001; a < 0x100000; a += 0x800)
            add_address(&s, a);
        add_address(&s, 0x2000100);
        add_address(&s, 0x4000100);
        assert_true(symbolise_run(s.dir, NULL) >= 0);
        source_close(&s);
    }
}

static void a_crash_is_named_from_its_maps(void **state)
{
    (void)state;
    struct buf maps = BUF_INIT;
    struct symbolise_frame frames[8];
    const uint64_t landmark = (uint64_t)(uintptr_t)symbolise_landmark;
    const uint64_t addresses[] = { landmark, landmark + 1, 0x10 };
    assert_int_equal(file_read_all("/proc/self/maps", 1 << 20, &maps), 0);
    const int n = symbolise_addresses(maps.data, addresses, 3, frames, 8);
    assert_int_equal(n, 3);
    assert_string_equal(frames[0].function, "symbolise_landmark");
    assert_string_equal(frames[1].function, "symbolise_landmark");
    assert_true(strstr(frames[0].module, "symbolise_test") != NULL);
    assert_string_equal(frames[2].function, "");
    assert_int_equal(frames[2].address, 0x10);
    assert_int_equal(symbolise_addresses("", addresses, 3, frames, 2), 2);
    buf_release(&maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_any_table_get_names),
        cmocka_unit_test(a_run_without_addresses_gets_no_file),
        cmocka_unit_test(damaged_files_do_not_harm_us),
        cmocka_unit_test(a_crash_is_named_from_its_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
