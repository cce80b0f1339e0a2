// labels: no_asan
/* Names of places in ELF files, with elfutils and without. */
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "capture/symbol/elffile.h"
#include "capture/symbol/symbol.h"

void symbol_landmark(void);
__attribute__((noinline, used)) void symbol_landmark(void)
{
    __asm__ volatile("nop");
}

/* The offset in its file of an address of ours. */
static uint64_t offset_of(const void *address)
{
    struct buf maps = BUF_INIT;
    uint64_t found = 0;
    assert_int_equal(file_read_all("/proc/self/maps", 1 << 20, &maps), 0);
    for (char *line = strtok(maps.data, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long start, end, offset;
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
            (uintptr_t)address >= start && (uintptr_t)address < end)
            found = (uintptr_t)address - start + offset;
    }
    buf_release(&maps);
    return found;
}

static void our_own_functions_have_names(void **state)
{
    (void)state;
    struct symbol_module *m;
    struct symbol_frame frames[SYMBOL_FRAMES];
    assert_int_equal(symbol_open(&(struct symbol_file){ .path = "/proc/self/exe" }, &m),
                     0);
    const unsigned n = symbol_find(m, offset_of((const void *)symbol_landmark), frames,
                                   SYMBOL_FRAMES);
    assert_int_equal(n, 1);
    assert_string_equal(frames[0].function, "symbol_landmark");
    if (symbol_has_lines()) {
        assert_true(strstr(frames[0].file, "symbol_test.c") != NULL);
        assert_true(frames[0].line > 0 && frames[0].function_line > 0);
    }
    assert_int_equal(symbol_find(m, UINT64_MAX, frames, SYMBOL_FRAMES), 0);
    assert_int_equal(symbol_find(m, 0, frames, 0), 0);
    assert_false(symbol_is_stripped(m));
    symbol_close(m);
}

static void symbol_tables_do_without_elfutils(void **state)
{
    (void)state;
    struct elffile file;
    struct elfsyms syms;
    uint64_t address;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(elffile_read(fd, &file), 0);
    assert_int_equal(elfsyms_read(&file, &syms), 0);
    const uint64_t offset = offset_of((const void *)symbol_landmark);
    assert_true(elffile_address(&file, offset, &address));
    assert_string_equal(elfsyms_find(&syms, address), "symbol_landmark");
    assert_string_equal(elfsyms_find(&syms, 0), "");
    assert_string_equal(elfsyms_find(&syms, UINT64_MAX), "");
    elfsyms_release(&syms);
    (void)close(fd);
}

static void another_file_at_the_path_is_refused(void **state)
{
    (void)state;
    static const uint8_t wrong[20] = { 1, 2, 3 };
    struct symbol_module *m;
    struct symbol_file file = { .path = "/proc/self/exe",
                                .build_id = wrong,
                                .build_id_len = sizeof wrong };
    assert_int_equal(symbol_open(&file, &m), SONDE_E_STATE);
    file = (struct symbol_file){ .path = "/proc/self/exe", .inode = 1 };
    assert_int_equal(symbol_open(&file, &m), SONDE_E_STATE);
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
    (void)state;
    char dir[64], path[96];
    struct symbol_module *m;
    assert_non_null(unit_temp_dir(dir));
    (void)snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(symbol_open(&(struct symbol_file){ .path = path }, &m),
                     SONDE_E_FORMAT);
    assert_int_equal(symbol_open(&(struct symbol_file){ .path = dir }, &m),
                     SONDE_E_FORMAT);
    assert_int_equal(symbol_open(&(struct symbol_file){ .path = "/etc/passwd" }, &m),
                     SONDE_E_FORMAT);
    assert_true(symbol_open(&(struct symbol_file){ .path = "relative" }, &m) < 0);
    assert_true(symbol_open(&(struct symbol_file){ .path = "/none" }, &m) < 0);
    (void)file_remove_tree(dir);
}

static void the_vdso_is_everybodys(void **state)
{
    (void)state;
    struct symbol_module *m;
    struct symbol_frame frames[SYMBOL_FRAMES];
    const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    void *handle = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *f = handle ? dlsym(handle, "__vdso_clock_gettime") : NULL;
    if (!image || !f)
        skip();
    assert_int_equal(symbol_open(&(struct symbol_file){ .path = "[vdso]" }, &m), 0);
    const unsigned n = symbol_find(m, (uint64_t)((const uint8_t *)f - image), frames,
                                   SYMBOL_FRAMES);
    assert_true(n >= 1 && strstr(frames[0].function, "clock_gettime"));
    symbol_close(m);
}

static void names_of_cplusplus_are_readable(void **state)
{
    (void)state;
    char *text = symbol_demangle("_ZNSt6vectorIiSaIiEE9push_backEOi");
    if (!text)
        skip(); /* no libstdc++ here */
    assert_string_equal(text,
                        "std::vector<int, std::allocator<int> >::push_back(int&&)");
    free(text);
    assert_null(symbol_demangle("main"));
    assert_null(symbol_demangle("_Znonsense!"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_functions_have_names),
        cmocka_unit_test(symbol_tables_do_without_elfutils),
        cmocka_unit_test(another_file_at_the_path_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused_without_waiting),
        cmocka_unit_test(the_vdso_is_everybodys),
        cmocka_unit_test(names_of_cplusplus_are_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
