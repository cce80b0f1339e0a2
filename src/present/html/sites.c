/* sites.c: names that zones and frames share, each once.
 *
 * The map's keys are the sites: "phase line\0name\0file". Its entries stay in order, so
 * a number is a place in it.
 */
#include "present/html/sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

/* Longer names are cut: nobody reads them, and thousands of them fill a page. */
enum { NAME_MOST = 400 };

void site_names_init(struct site_names *names)
{
    *names = (struct site_names){ .key = BUF_INIT };
    strmap_init(&names->index);
}

void site_names_release(struct site_names *names)
{
    strmap_release(&names->index);
    buf_release(&names->key);
}

static void append_cut(struct buf *key, const char *text)
{
    const size_t len = strnlen(text, NAME_MOST + 1);
    buf_append(key, text, len > NAME_MOST ? NAME_MOST : len);
    if (len > NAME_MOST)
        buf_puts(key, "\xe2\x80\xa6");
}

uint32_t site_number(struct site_names *names, const struct site_name *site)
{
    struct buf *key = &names->key;
    bool added;
    buf_clear(key);
    buf_printf(key, "%d %u", site->phase, site->line);
    buf_putc(key, '\0');
    append_cut(key, site->name);
    buf_putc(key, '\0');
    append_cut(key, site->file);
    struct strmap_entry *e = key->error ? NULL
                                        : strmap_enter(&names->index, key->data,
                                                       key->len, &added);
    if (!e) {
        names->error = -ENOMEM;
        return 0;
    }
    if (added)
        e->value = names->index.count - 1;
    return (uint32_t)e->value;
}

static void put_site(struct json_writer *w, const char *key)
{
    char *end;
    const long phase = strtol(key, &end, 10);
    const unsigned long line = strtoul(end, NULL, 10);
    const char *name = key + strlen(key) + 1;
    const char *file = name + strlen(name) + 1;
    json_array_begin(w);
    json_put_string(w, name);
    if (phase || file[0])
        json_put_string(w, phase ? sonde_phase_name((int)phase) : NULL);
    if (file[0]) {
        json_put_string(w, file);
        json_put_uint(w, line);
    }
    json_array_end(w);
}

void site_names_put(struct json_writer *w, const struct site_names *names)
{
    json_key(w, "sites");
    json_array_begin(w);
    for (size_t i = 0; i < names->index.count; i++)
        put_site(w, names->index.entries[i].key);
    json_array_end(w);
}
