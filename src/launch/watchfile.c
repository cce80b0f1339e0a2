/* watchfile.c: the post-mortem's state in a file. */
#include "launch/watchfile.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/human.h"
#include "base/signame.h"

static const double MIB = 1048576;

/* ---- Writing ------------------------------------------------------------------------- */

void watchfile_open(struct watchfile *ret_file, const char *dir,
                    struct control *control, const struct memcg *group)
{
    static const struct tables_spec spec = { WATCH_STATE, sizeof(struct watch_row), 1 };
    struct watchfile *f = ret_file;
    f->row = NULL;
    if (tables_create(dir, WATCH_KIND, control, &spec, 1, &f->tables) < 0)
        return;
    uint32_t index;
    struct watch_row *r = tables_append(&f->tables, 1, &index);
    if (!r)
        return;
    r->kills = r->at_top = r->limit = MEMCG_UNKNOWN;
    if (group && group->level_count) {
        r->group_version = (uint32_t)group->version;
        r->kills = group->level[0].kills;
        r->at_top = group->level[0].at_top;
        r->limit = memcg_limit(group);
        (void)snprintf(r->dir, sizeof r->dir, "%s", group->dir);
        (void)snprintf(r->path, sizeof r->path, "%s", group->path);
    }
    __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
    f->row = r;
}

void watchfile_close(struct watchfile *file)
{
    if (file->tables.base) /* a zeroed struct holds no descriptor, not number 0 */
        tables_close(&file->tables);
    file->row = NULL;
}

void watchfile_update(struct watchfile *file, uint64_t rss, double growth, bool hanging)
{
    if (!file->row)
        return;
    file->row->rss = rss;
    file->row->growth = isnan(growth) ? 0 : (int64_t)growth;
    file->row->hanging = hanging;
}

void watchfile_asked(struct watchfile *file, int signal, bool scheduler)
{
    if (!file->row)
        return;
    file->row->scheduler = scheduler;
    file->row->asked_signal = (uint32_t)signal;
}

/* ---- Reading ----------------------------------------------------------------------------- */

static bool read_row(const char *path, struct watch_row *ret_row)
{
    struct tablefile *file;
    if (tablefile_open(path, &file) < 0)
        return false;
    const int table = tablefile_find(file, WATCH_STATE);
    const bool there = table >= 0 &&
                       tablefile_get(file, table, 0, ret_row, sizeof *ret_row);
    tablefile_free(file);
    ret_row->dir[sizeof ret_row->dir - 1] = '\0';
    ret_row->path[sizeof ret_row->path - 1] = '\0';
    return there;
}

static bool find_row(const char *dir, struct watch_row *ret_row)
{
    bool found = false;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        struct buf path = BUF_INIT;
        path_join(&path, dir, e->d_name);
        if (tablefile_is_name(e->d_name, WATCH_KIND) && path.error == 0)
            found = read_row(path.data, ret_row);
        buf_release(&path);
    }
    if (d)
        (void)closedir(d);
    return found;
}

/* The group as it was then, so that memcg_look() tells what came since. */
static void look_back(const struct watch_row *r, struct memcg_news *ret_news)
{
    struct memcg g = { .version = (int)r->group_version, .level_count = 1 };
    (void)snprintf(g.dir, sizeof g.dir, "%s", r->dir);
    (void)snprintf(g.path, sizeof g.path, "%s", r->path);
    g.mount_len = 0;
    g.level[0] = (struct memcg_level){ .dir_len = strlen(r->dir),
                                       .limit = r->limit,
                                       .kills = r->kills,
                                       .at_top = r->at_top };
    memcg_look(&g, ret_news);
}

static void say_sizes(const struct watch_row *r, struct runfile_death *d)
{
    char limit[HUMAN_LEN], size[HUMAN_LEN], growth[HUMAN_LEN] = "";
    const size_t used = strlen(d->text);
    d->size_mb = (double)r->rss / MIB;
    if (r->growth > 0)
        d->growth_mb_per_s = (double)r->growth / MIB;
    if (r->growth > MIB / 10)
        (void)human_bytes(growth, (double)r->growth);
    if (r->limit != MEMCG_UNKNOWN)
        d->limit_mb = (double)r->limit / MIB;
    (void)snprintf(
        d->text + used, sizeof d->text - used, "%s%s%sit had %s%s%s%s",
        r->limit != MEMCG_UNKNOWN ? "limit " : "",
        r->limit != MEMCG_UNKNOWN ? human_bytes(limit, (double)r->limit) : "",
        r->limit != MEMCG_UNKNOWN ? ", " : "", human_bytes(size, (double)r->rss),
        growth[0] ? " (+" : "", growth, growth[0] ? "/s)" : "");
}

static bool killed_for_memory(const struct watch_row *r, bool same_boot,
                              struct runfile_exit *x, struct runfile_death *d)
{
    struct memcg_news news = { 0 };
    if (r->group_version == 0 || !same_boot || r->kills == MEMCG_UNKNOWN)
        return false;
    look_back(r, &news);
    if (!news.readable || news.kills == 0)
        return false;
    const bool by_group = news.at_limit || (double)r->rss > 0.9 * (double)r->limit;
    x->cause = by_group ? "oom_cgroup" : "oom_host";
    (void)snprintf(d->group, sizeof d->group, "%.255s", r->path);
    (void)snprintf(d->text, sizeof d->text,
                   "killed with its supervisor by the OOM killer%s%.255s: ",
                   by_group ? " of cgroup " : "", by_group ? r->path : "");
    say_sizes(r, d);
    (void)snprintf(d->method, sizeof d->method, "oom_kill of the cgroup +%llu",
                   (unsigned long long)news.kills);
    return true;
}

static bool asked_to_end(const struct watch_row *r, struct runfile_exit *x,
                         struct runfile_death *d)
{
    char name[SIGNAL_NAME_LEN];
    if (r->asked_signal == 0 || r->asked_signal > 64)
        return false;
    if (r->scheduler && r->asked_signal == SIGTERM)
        x->cause = "preempted";
    (void)snprintf(d->text, sizeof d->text,
                   "killed with its supervisor after %s had come from outside",
                   signal_name((int)r->asked_signal, name));
    (void)snprintf(d->method, sizeof d->method, "signal seen by the supervisor");
    return true;
}

/* No proof, but worth saying: the cause stays unknown. */
static void suspect(const struct watch_row *r, struct runfile_death *d)
{
    if (r->limit == MEMCG_UNKNOWN || (double)r->rss < 0.9 * (double)r->limit)
        return;
    (void)snprintf(
        d->text, sizeof d->text,
        "ended unseen, with its supervisor; probably the OOM killer of cgroup "
        "%.255s: ",
        r->path);
    say_sizes(r, d);
    (void)snprintf(d->method, sizeof d->method, "size near the limit at the last look");
}

void watchfile_judge(const char *dir, bool same_boot, struct runfile_exit *ret_exit,
                     struct runfile_death *ret_death)
{
    struct watch_row row;
    *ret_exit = (struct runfile_exit){ .code = -1, .cause = "unknown" };
    *ret_death = (struct runfile_death){ .limit_mb = NAN,
                                         .size_mb = NAN,
                                         .growth_mb_per_s = NAN };
    if (!find_row(dir, &row))
        return;
    if (!killed_for_memory(&row, same_boot, ret_exit, ret_death) &&
        !asked_to_end(&row, ret_exit, ret_death))
        suspect(&row, ret_death);
}
