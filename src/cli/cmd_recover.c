/* cmd_recover.c: `sonde recover`: bring runs into their final form after a crash.
 *
 * Readers need none of it: they fold in memory what nobody folded. Recovery makes it
 * permanent, ends runs whose supervisor died, and saves space with --compact.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "launch/adopt.h"
#include "store/list.h"
#include "trace/guard.h"
#include "trace/recover.h"

struct recover_options {
    bool compact, all, json;
};

#define FIELD(name) offsetof(struct recover_options, name)

static const struct option options[] = {
    { "compact", 0, OPTION_FLAG, FIELD(compact),
      .help = "rewrite the traces of ended processes in their smallest form" },
    { "all", 0, OPTION_FLAG, FIELD(all), .help = "all runs kept here" },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "print JSON" },
};

static const struct command command = {
    .verb = "recover",
    .usage = "[options] [RUN…]",
    .summary = "finish runs after a crash; compact them",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "RUN defaults to @last. Safe at any time, also on a run that is going on.\n"
            "Exit status: 0, 1 when something in a trace is damaged, 2 on failure.\n",
};

struct job {
    const struct recover_options *options;
    struct json_writer json;
    int status; /* worst so far */
};

static void worsen(struct job *job, int status)
{
    if (status > job->status)
        job->status = status;
}

static void put_number(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_put_uint(w, value);
}

static void print_json(struct json_writer *w, const char *dir, bool adopted,
                       const struct recover_result *r)
{
    json_object_begin(w);
    json_key(w, "directory");
    json_put_string(w, dir);
    json_key(w, "adopted");
    json_put_bool(w, adopted);
    put_number(w, "files", r->files);
    put_number(w, "alive", r->alive);
    put_number(w, "folded_blocks", r->folded_blocks);
    put_number(w, "compacted", r->compacted);
    put_number(w, "damaged", r->damaged);
    put_number(w, "bytes_before", r->bytes_before);
    put_number(w, "bytes_after", r->bytes_after);
    json_key(w, "problem");
    json_put_string(w, r->first_problem[0] ? r->first_problem : NULL);
    json_object_end(w);
}

static void print_text(const char *dir, bool adopted, const struct recover_result *r)
{
    char before[HUMAN_LEN], after[HUMAN_LEN];
    printf("%s: %u trace file%s, %u block%s folded", path_base(dir), r->files,
           r->files == 1 ? "" : "s", r->folded_blocks,
           r->folded_blocks == 1 ? "" : "s");
    if (r->compacted > 0)
        printf(", %u compacted (%s → %s)", r->compacted,
               human_bytes(before, (double)r->bytes_before),
               human_bytes(after, (double)r->bytes_after));
    if (r->alive > 0)
        printf(", %u still recording", r->alive);
    if (r->damaged > 0)
        printf(", %u damaged: %s", r->damaged, r->first_problem);
    puts(adopted ? "; ended: its supervisor had died" : "");
}

static void recover_one(struct job *job, const char *dir)
{
    struct recover_result result = { 0 };
    const int adopted = adopt_run(dir);
    const int rc = recover_run(dir, job->options->compact, &result);
    if (rc < 0) {
        cli_error("cannot recover '%s': %s", dir,
                  result.first_problem[0] ? result.first_problem : error_text(rc));
        worsen(job, CLI_FAILED);
        return;
    }
    if (result.damaged > 0)
        worsen(job, CLI_NO);
    if (job->options->json)
        print_json(&job->json, dir, adopted > 0, &result);
    else
        print_text(dir, adopted > 0, &result);
}

static void recover_ref(struct job *job, const char *ref)
{
    struct buf path = BUF_INIT, note = BUF_INIT, dir = BUF_INIT;
    if (run_resolve(store_directory(), ref, &path, &note) < 0) {
        cli_error("%s", note.data);
        worsen(job, CLI_FAILED);
        goto done;
    }
    if (note.len > 0)
        cli_error("%s", note.data);
    if (path_is_dir(path.data))
        buf_puts(&dir, path.data);
    else
        path_parent(&dir, path.data);
    recover_one(job, dir.data);
done:
    buf_release(&path);
    buf_release(&note);
    buf_release(&dir);
}

static void recover_all(struct job *job)
{
    struct run_list list;
    const int rc = run_list_read(store_directory(), &list);
    if (rc < 0) {
        cli_error("cannot list the runs in '%s': %s", store_directory(),
                  error_text(rc));
        worsen(job, CLI_FAILED);
        return;
    }
    for (size_t i = 0; i < list.count; i++)
        recover_one(job, list.rows[i].dir);
    run_list_release(&list);
}

int cmd_recover(int argc, char **argv)
{
    struct recover_options o = { 0 };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (o.all && argc > 1)
        return options_fail(&command, "give runs or --all, not both");

    struct job job = { .options = &o };
    guard_install();
    if (o.json) {
        json_init_file(&job.json, stdout, JSON_STYLE_PRETTY);
        json_array_begin(&job.json);
    }
    if (o.all)
        recover_all(&job);
    else if (argc < 2)
        recover_ref(&job, NULL);
    for (int i = 1; i < argc; i++)
        recover_ref(&job, argv[i]);
    if (o.json) {
        json_array_end(&job.json);
        json_newline(&job.json);
        if (json_finish(&job.json) < 0)
            worsen(&job, CLI_FAILED);
    }
    return job.status;
}
