/* fake_run.h: a run directory whose traces are stand-ins (fake_trace.h). */
#ifndef SONDE_TESTS_FAKE_RUN_H
#define SONDE_TESTS_FAKE_RUN_H

#include "unit.h"

#include "base/buf.h"
#include "base/files.h"
#include "fake_trace.h"

static char fake_root[64]; /* of the test; a store */

static inline int fake_setup(void **state)
{
    (void)state;
    return unit_temp_dir(fake_root) ? 0 : -1;
}

static inline int fake_teardown(void **state)
{
    (void)state;
    fake_forget();
    return file_remove_tree(fake_root);
}

static inline void fake_write(const char *dir, const char *name, const char *text)
{
    struct buf path = BUF_INIT;
    path_join(&path, dir, name);
    assert_int_equal(file_write_atomic(path.data, text, strlen(text), 0600), 0);
    buf_release(&path);
}

/* ROOT/runs/ID with run.json (NULL: none); the path is valid until the next call. */
static inline const char *fake_run_dir(const char *id, const char *run_json)
{
    static char dir[256];
    (void)snprintf(dir, sizeof(dir), "%s/runs/%s", fake_root, id);
    assert_int_equal(dir_make(dir, 0700), 0);
    if (run_json)
        fake_write(dir, "run.json", run_json);
    return dir;
}

/* Makes trace_open() be called for every stand-in. */
static inline void fake_run_files(const char *dir)
{
    for (unsigned i = 0; i < fake_count; i++)
        fake_write(dir, fake_traces[i]->info.file, "");
}

#endif
