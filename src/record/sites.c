/* sites.c: names get numbers.
 *
 * The registry lives in private memory in the very layout of the file's site and
 * string blocks. A new site is written there, then into the file, then published in
 * both by a count: a fork at any instant leaves the child a consistent prefix, which
 * it copies into its own file, so numbers mean the same in parent and child and the
 * static sites of the program need no second registration.
 */
#include "record/recorder.h"

#include <string.h>
#include <sys/mman.h>

enum { STRING_BYTES = STRING_BLOCKS * BLOCK_SIZE, SITE_HASH = 4 * MAX_SITES };

struct registry {
    uint32_t count; /* sites published */
    uint64_t string_bytes;
    uint32_t hash_count; /* sites entered into the hash (≤ count) */
    struct site_entry sites[MAX_SITES];
    struct sonde_site named[MAX_SITES]; /* objects for sonde_site_named() */
    uint16_t hash[SITE_HASH];
    char strings[STRING_BYTES];
};
static struct registry *registry;

static const char OTHER_NAMES[] = "(other names)";

/* Threads may come here at once, before there is a session and its locks. */
static bool registry_ready(void)
{
    if (__atomic_load_n(&registry, __ATOMIC_ACQUIRE))
        return true;
    struct registry *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r == MAP_FAILED)
        return false;
    r->count = r->hash_count = FIRST_SITE;
    r->string_bytes = 1;
    memcpy(r->strings + 1, OTHER_NAMES, sizeof OTHER_NAMES);
    r->sites[SITE_OTHER].name = 1;
    r->string_bytes += sizeof OTHER_NAMES;
    r->named[SITE_OTHER] = (struct sonde_site){ .word = SITE_OTHER << 1,
                                                .id = SITE_OTHER,
                                                .name = r->strings + 1 };
    struct registry *none = NULL;
    if (!__atomic_compare_exchange_n(&registry, &none, r, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        (void)munmap(r, sizeof *r); /* another thread was faster */
    return true;
}

bool sites_prepare(void)
{
    return registry_ready();
}

/* ---- Looking up ------------------------------------------------------------------ */

static const char ELLIPSIS[] = "\xE2\x80\xA6";
enum { KEPT_NAME = MAX_NAME - sizeof ELLIPSIS };

/* How much of a string is kept: all of it, or as many whole characters as leave room
 * for an ellipsis. The answer is the same for a string that was cut already. */
static size_t kept_length(const char *s)
{
    size_t len = strnlen(s, KEPT_NAME);
    while (s[len] != '\0' && len > 0 && ((uint8_t)s[len] & 0xC0) == 0x80)
        len--;
    return len;
}

static uint32_t hash_string(uint32_t h, const char *s)
{
    size_t len = s ? kept_length(s) : 0;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)s[i]) * 16777619u;
    return h * 31 + 7;
}

static uint32_t hash_spec(const struct site_spec *s)
{
    uint32_t h = hash_string(2166136261u, s->name);
    h = hash_string(h, s->file);
    h = hash_string(h, s->component);
    h = hash_string(h, s->category);
    h = hash_string(h, s->tags);
    h ^= (uint32_t)s->line * 2654435761u ^ (uint32_t)s->phase << 8 ^ s->flags;
    return (h ^ h >> 15) & (SITE_HASH - 1);
}

static bool same(uint32_t offset, const char *s)
{
    const char *stored = registry->strings + offset;
    s = s ? s : "";
    size_t len = kept_length(s);
    return strncmp(stored, s, len) == 0 &&
           strcmp(stored + len, s[len] == '\0' ? "" : ELLIPSIS) == 0;
}

static bool matches(uint32_t id, const struct site_spec *s)
{
    const struct site_entry *e = &registry->sites[id];
    return e->line == s->line && e->phase == s->phase && e->flags == s->flags &&
           same(e->name, s->name) && same(e->file, s->file) &&
           same(e->component, s->component) && same(e->category, s->category) &&
           same(e->tags, s->tags);
}

static void hash_enter(uint32_t id, uint32_t at)
{
    while (registry->hash[at])
        at = (at + 1) & (SITE_HASH - 1);
    registry->hash[at] = (uint16_t)id;
}

static struct site_spec spec_of(uint32_t id)
{
    const struct site_entry *e = &registry->sites[id];
    const char *s = registry->strings;
    return (struct site_spec){ s + e->name,     s + e->file, s + e->component,
                               s + e->category, s + e->tags, e->line,
                               e->phase,        e->flags };
}

/* After a fork in the middle of an insertion the hash may lag behind the sites. */
static void hash_catch_up(void)
{
    while (registry->hash_count < registry->count) {
        struct site_spec spec = spec_of(registry->hash_count);
        hash_enter(registry->hash_count, hash_spec(&spec));
        registry->hash_count++;
    }
}

static uint32_t find(const struct site_spec *spec)
{
    for (uint32_t at = hash_spec(spec); registry->hash[at];
         at = (at + 1) & (SITE_HASH - 1)) {
        uint32_t id = registry->hash[at];
        if (id < registry->count && matches(id, spec))
            return id;
    }
    return 0;
}

/* ---- Writing --------------------------------------------------------------------- */

/* Copies [from, to) of the strings into the file's string blocks. */
static int strings_to_file(uint64_t from, uint64_t to)
{
    struct tracefile *f = &recorder.file;
    while (from < to) {
        uint32_t index = (uint32_t)(from / BLOCK_SIZE);
        int rc = tracefile_need(f, tracefile_head(f)->strings, index, BLOCK_STRINGS);
        if (rc < 0)
            return rc;
        uint8_t *block = tracefile_block(f, tracefile_head(f)->strings[index]);
        uint64_t in_block = from % BLOCK_SIZE, len = BLOCK_SIZE - in_block;
        if (len > to - from)
            len = to - from;
        if (!block)
            return -5; /* EIO */
        memcpy(block + in_block, registry->strings + from, len);
        from += len;
    }
    __atomic_store_n(&recorder_live()->string_bytes, to, __ATOMIC_RELEASE);
    return 0;
}

static int site_to_file(uint32_t id)
{
    struct tracefile *f = &recorder.file;
    int rc = tracefile_need(f, tracefile_head(f)->sites, id / SITES_PER_BLOCK,
                            BLOCK_SITES);
    struct site_entry *entry = rc == 0 ? tracefile_site(f, id) : NULL;
    if (!entry)
        return rc < 0 ? rc : -5;
    *entry = registry->sites[id];
    return 0;
}

void sites_copy_to_file(void)
{
    if (!registry_ready())
        return;
    uint32_t count = __atomic_load_n(&registry->count, __ATOMIC_ACQUIRE);
    int rc = strings_to_file(
        1, __atomic_load_n(&registry->string_bytes, __ATOMIC_ACQUIRE));
    if (rc == 0)
        rc = site_to_file(SITE_OTHER);
    uint32_t done = FIRST_SITE;
    while (rc == 0 && done < count) {
        rc = site_to_file(done);
        done += rc == 0;
    }
    if (rc < 0)
        recorder_live()->names_lost += count - done;
    __atomic_store_n(&recorder_live()->site_count, done, __ATOMIC_RELEASE);
}

/* Appends a string; 0 (the empty string) for NULL, −1 when there is no room. */
static int64_t put_string(const char *s)
{
    if (!s || !*s)
        return 0;
    size_t len = kept_length(s);
    uint64_t at = registry->string_bytes;
    if (at + len + 4 > STRING_BYTES)
        return -1;
    char *p = registry->strings + at;
    memcpy(p, s, len);
    if (s[len] != '\0') { /* cut, and said so */
        memcpy(p + len, ELLIPSIS, sizeof ELLIPSIS - 1);
        len += sizeof ELLIPSIS - 1;
    }
    p[len] = '\0';
    registry->string_bytes = at + len + 1;
    return (int64_t)at;
}

static uint32_t append(const struct site_spec *s)
{
    uint32_t id = registry->count;
    uint64_t before = registry->string_bytes;
    if (id >= MAX_SITES)
        return SITE_OTHER;
    const char *texts[5] = { s->name, s->file, s->component, s->category, s->tags };
    int64_t at[5];
    for (int i = 0; i < 5; i++) {
        at[i] = put_string(texts[i]);
        if (at[i] < 0) {
            registry->string_bytes = before;
            return SITE_OTHER;
        }
    }
    registry->sites[id] = (struct site_entry){
        (uint32_t)at[0],    (uint32_t)at[1],    (uint32_t)at[2],
        (uint32_t)at[3],    (uint32_t)at[4],    s->line,
        (uint16_t)s->phase, (uint16_t)s->flags, 0
    };
    if (recorder_has_file()) {
        if (strings_to_file(before, registry->string_bytes) < 0 ||
            site_to_file(id) < 0) {
            registry->string_bytes = before;
            return SITE_OTHER;
        }
        __atomic_store_n(&recorder_live()->site_count, id + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&registry->count, id + 1, __ATOMIC_RELEASE);
    hash_catch_up();
    return id;
}

uint32_t sites_intern(const struct site_spec *given)
{
    struct site_spec spec = *given;
    if (!recorder.wiped || !registry_ready())
        return SITE_OTHER;
    if (spec.phase < 0 || spec.phase >= SONDE_PHASE_COUNT)
        spec.phase = SONDE_NO_PHASE;
    spin_lock(&recorder.wiped->sites_lock);
    hash_catch_up();
    uint32_t id = find(&spec);
    if (id == 0) {
        id = append(&spec);
        if (id == SITE_OTHER && recorder_has_file())
            recorder_live()->names_lost++;
    }
    spin_unlock(&recorder.wiped->sites_lock);
    return id;
}

/* The word comes before the id: an id with a word of 0 says "switched off". Only the
 * first of several threads stores them: another may have switched the site off since. */
void sites_register(struct sonde_site *site)
{
    struct site_spec spec = { site->name, site->file, site->component, site->category,
                              site->tags, site->line, site->phase,     0 };
    if (!recorder.wiped)
        return;
    const uint32_t id = sites_intern(&spec);
    spin_lock(&recorder.wiped->sites_lock);
    if (!site->id) {
        __atomic_store_n(&site->word, id << 1, __ATOMIC_RELAXED);
        __atomic_store_n(&site->id, id, __ATOMIC_RELEASE);
    }
    spin_unlock(&recorder.wiped->sites_lock);
}

struct sonde_site *sites_named(const struct site_spec *spec)
{
    static struct sonde_site nowhere = { .name = OTHER_NAMES };
    if (!recorder.wiped || !registry_ready())
        return &nowhere;
    uint32_t id = sites_intern(spec);
    struct sonde_site *site = &registry->named[id];
    if (__atomic_load_n(&site->id, __ATOMIC_ACQUIRE))
        return site;
    spin_lock(&recorder.wiped->sites_lock);
    if (!site->id) {
        struct site_spec own = spec_of(id);
        site->name = own.name;
        site->component = own.component;
        site->category = own.category;
        site->tags = own.tags;
        site->phase = own.phase;
        site->word = id << 1;
        __atomic_store_n(&site->id, id, __ATOMIC_RELEASE);
    }
    spin_unlock(&recorder.wiped->sites_lock);
    return site;
}

const char *sites_string(uint32_t id)
{
    return registry && id < MAX_SITES ? registry->strings + registry->sites[id].name
                                      : "";
}
