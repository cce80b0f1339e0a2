/* control_fuzz.c: a run's clock table, read from a hostile control file.
 *
 * First byte even: the rest is the file. Odd: the rest are the readings of a table (40
 * bytes each) in a control file that is right otherwise. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "trace/control.h"

static char dir[64];
static int fd = -1;

static void remove_dir(void)
{
    (void)file_remove_tree(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char path[96];
    (void)argc, (void)argv;
    const char *base = getenv("TMPDIR");
    (void)snprintf(dir, sizeof dir, "%s/sonde-fuzz-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(dir))
        abort();
    (void)snprintf(path, sizeof path, "%s/control.sonde", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || atexit(remove_dir) != 0)
        abort();
    return 0;
}

static void write_file(const void *bytes, size_t size)
{
    if (ftruncate(fd, 0) != 0 || fd_pwrite_full(fd, bytes, size, 0) < 0)
        abort();
}

static void write_readings(const uint8_t *data, size_t size)
{
    static uint8_t bytes[CONTROL_SIZE];
    struct control *c = (struct control *)bytes;
    struct clock_entry *entries = (struct clock_entry *)(bytes + CONTROL_CLOCK_OFFSET);
    size_t count = size / sizeof(struct clock_reading);
    count = count < 64 ? count : 64;
    *c = (struct control){ .magic = CONTROL_MAGIC,
                           .major = TRACE_MAJOR,
                           .clock_count = count };
    for (size_t i = 0; i < count; i++) {
        memcpy(&entries[i].reading, data + i * sizeof entries[i].reading,
               sizeof entries[i].reading);
        entries[i].valid = 1;
    }
    write_file(bytes, CONTROL_CLOCK_OFFSET + count * sizeof *entries);
}

static void use(const struct clock_table *table)
{
    static const uint64_t ticks[] = { 0, 1, 1ULL << 40, 1ULL << 63, UINT64_MAX };
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++)
        (void)clock_real_ns(table, ticks[i]);
    for (size_t i = 0; i < table->count; i++) {
        (void)clock_real_ns(table, table->readings[i].ticks);
        (void)clock_real_ns(table, table->readings[i].ticks + 12345);
        if (i > 0 && table->readings[i].ticks <= table->readings[i - 1].ticks)
            abort(); /* ascending, as the header says */
    }
    if (!(table->ns_per_tick > 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct clock_table table;
    if (size == 0)
        return 0;
    if (data[0] % 2)
        write_readings(data + 1, size - 1);
    else
        write_file(data + 1, size - 1);
    if (control_read_clock(dir, &table) == 0) {
        use(&table);
        clock_table_release(&table);
    }
    return 0;
}
