/* timers_test.c: rings of processes that sample themselves: counted, given back, removed;
 * and rings that are not what they seem. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/sample/timers.h"
#include "trace/stack_rows.h"
#include "trace/tables.h"
#include "trace/timer_ring.h"

static char dir[64];
static struct timers_reader *reader;

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/timers_test.XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(timers_open(dir, NULL, 100, &reader), 0);
    return 0;
}

/* Files whose name begins like that; the path of the last one. */
static unsigned count_files(const char *prefix, char *ret_path, size_t size,
                            bool remove)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0) {
            n++;
            if (ret_path)
                snprintf(ret_path, size, "%s/%s", dir, e->d_name);
            if (remove)
                assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
        }
    (void)closedir(d);
    return n;
}

static int tear_down(void **state)
{
    (void)state;
    timers_close(reader);
    reader = NULL;
    (void)count_files("", NULL, 0, true);
    return rmdir(dir);
}

static struct timer_ring *make_ring(const char *name, size_t len)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)len), 0);
    struct timer_ring *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                0);
    assert_ptr_not_equal(r, MAP_FAILED);
    (void)close(fd);
    if (len < sizeof *r)
        return r;
    r->pid = (uint32_t)getpid();
    strcpy(r->process, "worker");
    r->maps_len[0] = (uint32_t)sprintf(
        r->maps[0], "400000-500000 r-xp 00001000 08:01 77 /opt/none/prog\n");
    r->magic = TIMER_RING_MAGIC;
    return r;
}

static void put(struct timer_ring *r, uint16_t count, uint32_t weight, uint64_t pc)
{
    struct timer_slot *s = &r->slot[r->head++ % TIMER_SLOTS];
    assert_int_equal(s->state, TIMER_FREE);
    s->count = count;
    s->weight = weight;
    s->tid = 12;
    strcpy(s->name, "loader");
    for (unsigned i = 0; i < TIMER_FRAMES; i++)
        s->frame[i] = pc + 16 * i;
    s->state = TIMER_FULL;
}

static struct stack_info_row read_info(struct tablefile **ret_file)
{
    char path[400] = "";
    struct stack_info_row info = { 0 };
    assert_int_equal(count_files("stacks-", path, sizeof path, false), 1);
    assert_int_equal(tablefile_open(path, ret_file), 0);
    assert_true(tablefile_get(*ret_file, STACKS_INFO, 0, &info, sizeof info));
    return info;
}

static void samples_are_counted_and_slots_given_back(void **state)
{
    (void)state;
    struct tablefile *f;
    struct timer_ring *r = make_ring("timer-1-2-3.ring", sizeof *r);
    for (unsigned i = 0; i < 3 * TIMER_SLOTS; i++) {
        put(r, 3, 2, 0x400100);
        if (i % 100 == 99)
            (void)timers_tick(reader);
    }
    r->lost = 7;
    (void)timers_tick(reader);
    struct stack_info_row info = read_info(&f);
    assert_int_equal(info.method, STACKS_BY_TIMER);
    assert_int_equal(info.samples, 2 * 3 * TIMER_SLOTS);
    assert_int_equal(info.lost, 7);
    struct stack_frame_row frame;
    assert_int_equal(tablefile_count(f, STACKS_FRAMES), 3);
    assert_true(tablefile_get(f, STACKS_FRAMES, 2, &frame, sizeof frame));
    assert_int_equal(frame.key, 0x1100 + 1); /* the innermost comes last */
    assert_int_equal(frame.flags, 0);
    struct stack_task_row task;
    assert_true(tablefile_get(f, STACKS_TASKS, 0, &task, sizeof task));
    assert_string_equal(tablefile_text(f, task.thread), "loader");
    assert_string_equal(tablefile_text(f, task.process), "worker");
    tablefile_free(f);
    munmap(r, sizeof *r);
}

static void an_unfinished_slot_is_waited_for(void **state)
{
    (void)state;
    struct tablefile *f;
    struct timer_ring *r = make_ring("timer-1-2-3.ring", sizeof *r);
    put(r, 1, 1, 0x400100);
    r->slot[0].state = TIMER_TAKEN;
    put(r, 1, 1, 0x400200);
    r->head++; /* one that has its number but not its slot */
    (void)timers_tick(reader);
    (void)timers_tick(reader);
    struct stack_info_row info = read_info(&f);
    assert_int_equal(info.samples, 1);
    tablefile_free(f);
    r->slot[0].state = TIMER_FULL;
    r->head--;
    put(r, 1, 1, 0x400300);
    (void)timers_tick(reader);
    info = read_info(&f);
    assert_int_equal(info.samples, 3);
    tablefile_free(f);
    munmap(r, sizeof *r);
}

static void nothing_of_a_window_that_is_shut(void **state)
{
    (void)state;
    struct tablefile *f;
    struct timer_ring *r = make_ring("timer-1-2-3.ring", sizeof *r);
    timers_pause(reader, true);
    put(r, 1, 1, 0x400100);
    timers_pause(reader, false);
    put(r, 1, 1, 0x400100);
    (void)timers_tick(reader);
    assert_int_equal(read_info(&f).samples, 1);
    tablefile_free(f);
    munmap(r, sizeof *r);
}

static void hostile_rings_are_borne(void **state)
{
    (void)state;
    struct tablefile *f;
    struct timer_ring *cut = make_ring("timer-1-1-1.ring", 100);
    struct timer_ring *r = make_ring("timer-1-2-3.ring", sizeof *r);
    memset(r->maps, 'x', sizeof r->maps);
    r->maps_len[0] = UINT32_MAX;
    r->maps_len[1] = TIMER_MAPS;
    memset(r->process, 'y', sizeof r->process);
    put(r, UINT16_MAX, 1, UINT64_MAX);
    put(r, TIMER_FRAMES, UINT32_MAX, 0);
    memset(r->slot[1].name, 'z', sizeof r->slot[1].name);
    (void)timers_tick(reader);
    r->head = UINT64_MAX - 3;
    (void)timers_tick(reader);
    r->head = 1;
    r->lost = 0;
    (void)timers_tick(reader);
    assert_int_equal(read_info(&f).samples, 10000); /* a weight is bounded */
    tablefile_free(f);
    munmap(r, sizeof *r);
    munmap(cut, sizeof *cut);
}

static void rings_are_removed_in_the_end_and_absence_is_explained(void **state)
{
    (void)state;
    struct tablefile *f;
    timers_close(reader);
    struct stack_info_row info = read_info(&f);
    assert_non_null(strstr(tablefile_text(f, info.why), "statically"));
    tablefile_free(f);
    (void)count_files("", NULL, 0, true);
    assert_int_equal(timers_open(dir, NULL, 100, &reader), 0);
    struct timer_ring *r = make_ring("timer-1-2-3.ring", sizeof *r);
    put(r, 1, 1, 0x400100);
    r->ended = TIMER_SEALED;
    (void)timers_tick(reader);
    assert_int_equal(timers_given_up(reader), 1);
    timers_close(reader);
    reader = NULL;
    assert_int_equal(count_files("timer-", NULL, 0, false), 0);
    munmap(r, sizeof *r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples_are_counted_and_slots_given_back,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unfinished_slot_is_waited_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nothing_of_a_window_that_is_shut, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(hostile_rings_are_borne, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            rings_are_removed_in_the_end_and_absence_is_explained, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
