/* check_baseline.c: what `sonde check` compares with.
 *
 * The baseline is run again, in turn with the change, when that is honest: from a commit
 * checked out beside this tree, or when nothing it runs has changed since it was set.
 * Otherwise the samples stored with it stand in, which is weaker, and said.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files.h"
#include "cli/check.h"
#include "cli/cli.h"
#include "cli/settings.h"
#include "cli/sharedtree.h"
#include "store/fingerprint.h"
#include "store/list.h"
#include "store/store.h"

static bool parse_doc(struct check *c, const char *json, size_t len, const char *what)
{
    struct buf message = BUF_INIT;
    const int rc = baseline_parse(json, len, &c->arena, &c->doc, &message);
    if (rc < 0)
        cli_error("%s: %s", what, message.len ? message.data : error_text(rc));
    buf_release(&message);
    return rc == 0;
}

static bool read_file(struct check *c, const char *path)
{
    struct buf text = BUF_INIT;
    const int rc = file_read_all(path, CHECK_FILE_MOST, &text);
    if (rc < 0)
        cli_error("cannot read the baseline '%s': %s", path, error_text(rc));
    const bool good = rc == 0 && parse_doc(c, text.data, text.len, path);
    buf_release(&text);
    return good;
}

static int keep_json(void *arg, const struct baseline *b)
{
    buf_puts(arg, b->json ? b->json : "");
    return 0;
}

/* 1 found, 0 not there, −1 told. */
static int read_named(struct check *c, const char *name)
{
    struct store *store = NULL;
    struct buf json = BUF_INIT, why = BUF_INIT;
    int rc = store_open(store_directory(), 0, &store, &why);
    if (rc == 0)
        rc = store_each_baseline(store, name, keep_json, &json);
    else if (rc == -ENOENT || rc == SONDE_E_UNSUPPORTED)
        rc = 0;
    if (rc < 0)
        cli_error("%s", why.len ? why.data : error_text(rc));
    int found = rc < 0 ? -1 : json.len > 0;
    if (found == 1 && !parse_doc(c, json.data, json.len, name))
        found = -1;
    store_close(store);
    buf_release(&json);
    buf_release(&why);
    return found;
}

/* Rerunning is honest only while nothing it runs has changed. */
static void choose_way(struct check *c, bool from_file)
{
    char now[FINGERPRINT_LEN] = "";
    struct buf machine = BUF_INIT, differ = BUF_INIT;
    struct stat st;
    const struct baseline_doc *d = &c->doc;
    machine_words(&machine);
    c->other_machine = d->machine[0] && strcmp(d->machine, machine.data) != 0;
    if (d->has_environment) /* those of earlier versions do not say */
        settings_compare(d->environment, &differ);
    c->other_settings = differ.len > 0;
    c->way = CHECK_STORED;
    if (!from_file && d->command_count && d->cwd[0] && stat(d->cwd, &st) == 0 &&
        d->fingerprint[0])
        (void)fingerprint_of(d->command, d->command_count, d->cwd, now, NULL);
    if (now[0] && strcmp(now, d->fingerprint) == 0) {
        c->way = CHECK_RERUN;
        c->base_argv = d->command;
        c->base_dir = d->cwd;
        buf_printf(&c->title, "'%s', run again in turn: its sources are unchanged",
                   d->name);
    } else {
        buf_printf(&c->title, "'%s', as it was measured then", d->name);
        buf_printf(&c->weaker,
                   "the baseline is not run again (%s): what the machine did "
                   "in between counts too",
                   from_file            ? "it is a file"
                   : !d->fingerprint[0] ? "what it runs is not known"
                                        : "its sources have changed since");
        if (c->other_machine)
            buf_printf(&c->weaker, "; it was measured on another machine (%s, here %s)",
                       d->machine, machine.data);
        if (c->other_settings)
            buf_printf(&c->weaker, "; with other settings (%s)", differ.data);
    }
    buf_release(&machine);
    buf_release(&differ);
}

static bool open_git(struct check *c, const char *ref)
{
    c->way = CHECK_GIT;
    if (!gitref_open(&c->git, ref, c->options->build))
        return false;
    c->base_argv = c->argv;
    c->base_dir = c->git.cwd.data;
    buf_printf(&c->title, "%s (commit %.10s), checked out beside and run in turn", ref,
               c->git.commit);
    sharedtree_words(c->git.top.len ? c->git.top.data : "", c->argv, &c->weaker);
    return true;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool check_open_baseline(struct check *c)
{
    const char *ref = c->options->baseline;
    if (is_file(ref)) {
        if (!read_file(c, ref))
            return false;
        choose_way(c, true);
        return true;
    }
    const int named = read_named(c, ref);
    if (named < 0)
        return false;
    if (named) {
        choose_way(c, false);
        return true;
    }
    if (gitref_is(ref))
        return open_git(c, ref);
    cli_error(
        "there is no baseline '%s': no such name (sonde baseline list), commit or "
        "file",
        ref);
    return false;
}
