/* chrome_event.c: one event of the Chrome export. See chrome_parts.h. */
#include "present/export/chrome_parts.h"

#include <errno.h>
#include <math.h>

void chrome_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text);
}

void chrome_us(struct chrome *c, const char *key, int64_t ns)
{
    json_key(&c->w, key);
    json_put_fixed(&c->w, (double)ns / 1000, 3);
}

void chrome_begin(struct chrome *c, const char *name, const char *cat,
                  const char *phase, int64_t time_ns, uint32_t tid)
{
    buf_clear(&c->text);
    buf_puts(&c->text, c->any ? ",\n" : "\n");
    json_init_buf(&c->w, &c->text, JSON_STYLE_COMPACT);
    json_object_begin(&c->w);
    chrome_text(&c->w, "name", name);
    if (cat)
        chrome_text(&c->w, "cat", cat);
    chrome_text(&c->w, "ph", phase);
    chrome_us(c, "ts", time_ns - c->origin_ns);
    json_key(&c->w, "pid");
    json_put_uint(&c->w, c->pid);
    json_key(&c->w, "tid");
    json_put_uint(&c->w, tid);
    if (time_ns > c->last_ns)
        c->last_ns = time_ns;
}

int chrome_write(struct chrome *c)
{
    if (c->text.error)
        return c->text.error;
    c->any = true;
    c->totals.events++;
    errno = 0;
    if (fwrite(c->text.data, 1, c->text.len, c->out) != c->text.len)
        return errno > 0 ? -errno : -EIO;
    return 0;
}

int chrome_end(struct chrome *c)
{
    json_object_end(&c->w);
    const int rc = json_finish(&c->w);
    return rc < 0 ? rc : chrome_write(c);
}

void chrome_args(struct chrome *c)
{
    json_key(&c->w, "args");
    json_object_begin(&c->w);
}

void chrome_flag(struct chrome *c, const char *key, bool set)
{
    if (!set)
        return;
    json_key(&c->w, key);
    json_put_bool(&c->w, true);
}

void chrome_number(struct chrome *c, const char *key, double value)
{
    if (!isfinite(value))
        return;
    json_key(&c->w, key);
    json_put_double(&c->w, value);
}
