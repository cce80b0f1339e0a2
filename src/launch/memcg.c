/* memcg.c: the control groups that bound a process's memory.
 *
 * A kill is counted in the victim's group (v2: and above), reaching a limit in the
 * group that has it. So the two are looked for apart: kills at the innermost level,
 * the limit at every one.
 */
#include "launch/memcg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"

enum { TEXT_MAX = 1 << 20 };
/* v1 has no word for "no limit" but a number near 2^63. */
static const uint64_t V1_NO_LIMIT = 1ULL << 60;

/* ---- Small files ------------------------------------------------------------- */

static int read_at(const char *dir, size_t dir_len, const char *name,
                   struct buf *ret_text)
{
    struct buf path = BUF_INIT;
    buf_append(&path, dir, dir_len);
    buf_printf(&path, "/%s", name);
    const int rc = path.error ? path.error
                              : file_read_all(path.data, TEXT_MAX, ret_text);
    buf_release(&path);
    return rc;
}

/* A file that is one number; "max" is none. */
static uint64_t read_number(const char *dir, size_t dir_len, const char *name)
{
    struct buf text = BUF_INIT;
    uint64_t value = MEMCG_UNKNOWN;
    char *end;
    if (read_at(dir, dir_len, name, &text) == 0) {
        errno = 0;
        const unsigned long long n = strtoull(text.data, &end, 10);
        if (end != text.data && errno == 0)
            value = n;
    }
    buf_release(&text);
    return value;
}

/* The number behind a word at the beginning of a line. */
static uint64_t number_behind(const char *text, const char *word)
{
    const size_t len = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, len) == 0 && line[len] == ' ')
            return strtoull(line + len + 1, NULL, 10);
    }
    return MEMCG_UNKNOWN;
}

/* ---- Where it is --------------------------------------------------------------- */

static bool has_word(const char *list, size_t len, const char *word)
{
    const size_t n = strlen(word);
    for (size_t at = 0; at + n <= len;) {
        const char *comma = memchr(list + at, ',', len - at);
        const size_t part = comma ? (size_t)(comma - list) - at : len - at;
        if (part == n && memcmp(list + at, word, n) == 0)
            return true;
        at += part + 1;
    }
    return false;
}

/* "4:memory:/a/b" or "0::/a/b". The first kind wins: where both are mounted, the
 * memory controller belongs to v1. */
static int find_path(const char *text, char ret_path[MEMCG_PATH])
{
    int version = 0;
    for (const char *line = text; *line;) {
        const size_t len = strcspn(line, "\n");
        const char *names = memchr(line, ':', len);
        const char *path = names ? memchr(names + 1, ':',
                                          len - (size_t)(names + 1 - line))
                                 : NULL;
        if (path) {
            const size_t names_len = (size_t)(path - names) - 1;
            const bool v1 = has_word(names + 1, names_len, "memory");
            if (v1 || (names_len == 0 && version == 0)) {
                version = v1 ? 1 : 2;
                (void)snprintf(ret_path, MEMCG_PATH, "%.*s",
                               (int)(len - (size_t)(path + 1 - line)), path + 1);
            }
        }
        line += len + (line[len] == '\n');
    }
    return version;
}

/* A line of mountinfo: "id parent dev root place options … - type source super". */
static bool parse_mount(char *line, int version, char **ret_root, char **ret_place)
{
    char *dash = strstr(line, " - ");
    char *save = NULL;
    if (!dash)
        return false;
    *dash = '\0';
    const char *type = strtok_r(dash + 3, " ", &save);
    (void)strtok_r(NULL, " ", &save);
    const char *super = strtok_r(NULL, " ", &save);
    if (!type || strcmp(type, version == 2 ? "cgroup2" : "cgroup") != 0 ||
        (version == 1 && (!super || !has_word(super, strlen(super), "memory"))))
        return false;
    char *field = strtok_r(line, " ", &save);
    for (int i = 0; field && i < 3; i++)
        field = strtok_r(NULL, " ", &save);
    *ret_root = field;
    *ret_place = field ? strtok_r(NULL, " ", &save) : NULL;
    return *ret_place != NULL;
}

/* The mounted part of the tree may begin below its root. */
static const char *below(const char *path, const char *root)
{
    const size_t len = strlen(root);
    if (strcmp(root, "/") == 0 || strncmp(path, root, len) != 0)
        return path;
    return path + len;
}

static int find_directory(const char *proc, struct memcg *g)
{
    struct buf text = BUF_INIT;
    int rc = read_at(proc, strlen(proc), "self/mountinfo", &text);
    char *save = NULL;
    if (rc == 0)
        rc = SONDE_E_NOTFOUND;
    for (char *line = rc == SONDE_E_NOTFOUND ? strtok_r(text.data, "\n", &save) : NULL;
         line; line = strtok_r(NULL, "\n", &save)) {
        char *root, *place;
        if (!parse_mount(line, g->version, &root, &place))
            continue;
        const char *rest = below(g->path, root);
        const int n = snprintf(g->dir, sizeof g->dir, "%s%s", place,
                               strcmp(rest, "/") == 0 ? "" : rest);
        g->mount_len = strlen(place);
        rc = n > 0 && (size_t)n < sizeof g->dir ? 0 : -ENAMETOOLONG;
        break;
    }
    buf_release(&text);
    return rc;
}

static int read_path(const char *proc, pid_t pid, char ret_path[MEMCG_PATH])
{
    struct buf text = BUF_INIT;
    char name[48];
    (void)snprintf(name, sizeof name, "%ld/cgroup", (long)pid);
    int rc = read_at(proc, strlen(proc), name, &text);
    if (rc == 0) {
        rc = find_path(text.data, ret_path);
        if (rc == 0)
            rc = SONDE_E_NOTFOUND;
    }
    buf_release(&text);
    return rc;
}

/* ---- Levels ---------------------------------------------------------------------- */

static void read_level(const struct memcg *g, struct memcg_level *l)
{
    struct buf text = BUF_INIT;
    const bool v2 = g->version == 2;
    l->limit = read_number(g->dir, l->dir_len,
                           v2 ? "memory.max" : "memory.limit_in_bytes");
    if (!v2 && l->limit >= V1_NO_LIMIT)
        l->limit = MEMCG_UNKNOWN;
    l->kills = l->at_top = MEMCG_UNKNOWN;
    if (read_at(g->dir, l->dir_len, v2 ? "memory.events" : "memory.oom_control",
                &text) == 0) {
        l->kills = number_behind(text.data, "oom_kill");
        l->at_top = v2 ? number_behind(text.data, "oom")
                       : read_number(g->dir, l->dir_len, "memory.failcnt");
    }
    buf_release(&text);
}

static void read_levels(struct memcg *g)
{
    size_t len = strlen(g->dir);
    g->level_count = 0;
    while (g->level_count < MEMCG_LEVELS) {
        struct memcg_level *l = &g->level[g->level_count++];
        l->dir_len = len;
        read_level(g, l);
        if (len <= g->mount_len)
            break;
        while (len > g->mount_len && g->dir[len - 1] != '/')
            len--;
        len -= len > g->mount_len;
    }
}

int memcg_open(const char *proc, pid_t pid, struct memcg *ret_group)
{
    struct memcg g = { 0 };
    int rc = read_path(proc, pid, g.path);
    if (rc < 0)
        return rc;
    g.version = rc;
    rc = find_directory(proc, &g);
    if (rc < 0)
        return rc;
    read_levels(&g);
    *ret_group = g;
    return 0;
}

bool memcg_holds(const struct memcg *group, const char *proc, pid_t pid)
{
    char path[MEMCG_PATH];
    return read_path(proc, pid, path) < 0 || strcmp(path, group->path) == 0;
}

/* ---- Questions -------------------------------------------------------------------- */

static bool grew(uint64_t now, uint64_t before)
{
    return now != MEMCG_UNKNOWN && before != MEMCG_UNKNOWN && now > before;
}

static uint64_t peak_of(const struct memcg *g, const struct memcg_level *l)
{
    return read_number(g->dir, l->dir_len,
                       g->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes");
}

/* A level's name: the path without what lies below the level. */
static void name_level(const struct memcg *g, const struct memcg_level *l,
                       char ret_path[MEMCG_PATH])
{
    const size_t cut = strlen(g->dir) - l->dir_len;
    const size_t len = strlen(g->path);
    (void)snprintf(ret_path, MEMCG_PATH, "%.*s", (int)(cut < len ? len - cut : len),
                   g->path);
    if (!ret_path[0])
        (void)snprintf(ret_path, MEMCG_PATH, "/");
}

static const struct memcg_level *tightest(const struct memcg *g)
{
    const struct memcg_level *best = NULL;
    for (unsigned i = 0; i < g->level_count; i++)
        if (g->level[i].limit != MEMCG_UNKNOWN &&
            (!best || g->level[i].limit < best->limit))
            best = &g->level[i];
    return best;
}

void memcg_look(const struct memcg *group, struct memcg_news *ret_news)
{
    struct memcg_news news = { .limit = MEMCG_UNKNOWN, .peak = MEMCG_UNKNOWN };
    const struct memcg_level *guilty = NULL;
    for (unsigned i = 0; i < group->level_count; i++) {
        struct memcg_level now = group->level[i];
        read_level(group, &now);
        if (i == 0 && now.kills != MEMCG_UNKNOWN) {
            news.readable = true;
            news.kills = now.kills - group->level[0].kills;
        }
        if (!guilty && now.limit != MEMCG_UNKNOWN &&
            grew(now.at_top, group->level[i].at_top))
            guilty = &group->level[i];
    }
    news.at_limit = guilty != NULL;
    if (!guilty)
        guilty = tightest(group);
    if (guilty) {
        news.limit = guilty->limit;
        news.peak = peak_of(group, guilty);
        name_level(group, guilty, news.path);
    }
    *ret_news = news;
}

uint64_t memcg_limit(const struct memcg *group)
{
    const struct memcg_level *level = tightest(group);
    return level ? level->limit : MEMCG_UNKNOWN;
}

uint64_t memcg_usage(const struct memcg *group)
{
    return read_number(group->dir, strlen(group->dir),
                       group->version == 2 ? "memory.current"
                                           : "memory.usage_in_bytes");
}
