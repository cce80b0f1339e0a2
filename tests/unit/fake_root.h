/* fake_root.h: a directory laid out as /proc, /sys or a control group. */
#ifndef SONDE_TESTS_FAKE_ROOT_H
#define SONDE_TESTS_FAKE_ROOT_H

#include <string.h>

#include "base/buf.h"
#include "base/files.h"
#include "unit.h"

struct fake_root {
    char path[64];
};

static inline void fake_root_make(struct fake_root *r)
{
    assert_non_null(unit_temp_dir(r->path));
}

static inline void fake_root_remove(struct fake_root *r)
{
    assert_int_equal(file_remove_tree(r->path), 0);
}

/* Writes a file, making the directories above it. */
static inline void fake_root_put(const struct fake_root *r, const char *name,
                                 const char *text)
{
    struct buf path = BUF_INIT, parent = BUF_INIT;
    path_join(&path, r->path, name);
    path_parent(&parent, path.data);
    assert_int_equal(dir_make(parent.data, 0700), 0);
    assert_int_equal(file_replace(path.data, text, strlen(text), 0600), 0);
    buf_release(&path);
    buf_release(&parent);
}

#endif
