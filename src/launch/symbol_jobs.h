/* symbol_jobs.h: which addresses of a run want a name, sorted by where to look.
 *
 * Each kind of file of tables says here how its addresses are found: stacks have offsets
 * in modules, the others absolute addresses (module_rows.h).
 */
#ifndef SONDE_LAUNCH_SYMBOL_JOBS_H
#define SONDE_LAUNCH_SYMBOL_JOBS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/strmap.h"
#include "trace/module_rows.h"

/* A file to look into; with a pid, the map a JIT wrote. */
struct symbol_target {
    const char *path;
    uint32_t pid;
    uint64_t inode;
    uint8_t build_id_len;
    uint8_t build_id[MODULE_BUILD_ID_MAX];
};

struct symbol_job {
    uint32_t target;
    uint32_t source;
    uint64_t offset; /* in the file; of a JIT the address */
    uint64_t key;    /* under which the answer is kept (symbol_rows.h) */
};

struct symbol_jobs {
    struct arena arena;
    struct strmap names;  /* of targets already there */
    const char **sources; /* names of files of tables */
    size_t source_count, source_cap;
    struct symbol_target *targets;
    size_t target_count, target_cap;
    struct symbol_job *jobs; /* by target, then offset */
    size_t job_count, job_cap;
};

/* Reads all files of tables in the directory but those of symbols. Damaged ones are
 * left out. */
int symbol_jobs_collect(const char *dir, struct symbol_jobs *ret_jobs);
void symbol_jobs_release(struct symbol_jobs *jobs);

#endif
