/* html.c: the page: the app around one JSON document.
 *
 * web/dist/report.html holds the whole page with a marker where the document goes; the
 * hashes of its script and style are in its Content-Security-Policy already. The
 * document stands in a <script type="application/json">, which nothing can end: the
 * writer escapes <, > and &.
 */
#include "present/html/html.h"

#include <errno.h>
#include <string.h>

#include "base/hide.h"
#include "base/json.h"
#include "present/html/parts.h"

/* The page, put in by the assembler: C17 has no #embed. OBJECT_DEPENDS in
 * cmake/web.cmake makes a new page a new object. */
__asm__(".section .rodata\n"
        ".global sonde_web_page\n"
        ".global sonde_web_page_end\n"
        "sonde_web_page:\n"
        ".incbin \"" SONDE_WEB_PAGE "\"\n"
        "sonde_web_page_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char sonde_web_page[], sonde_web_page_end[];

static const char marker[] = "%SONDE_DOCUMENT%";

static int put_run(struct json_writer *w, const struct report *report,
                   const struct html_options *options)
{
    struct site_names sites;
    site_names_init(&sites);
    json_object_begin(w);
    json_key(w, "report");
    int rc = options->put_report(report, w);
    if (rc == 0)
        rc = html_timeline(w, report, &sites);
    if (rc == 0)
        rc = html_flame(w, report, &sites);
    if (rc == 0)
        rc = html_courses(w, report);
    if (rc == 0) {
        html_distributions(w, report, &sites);
        site_names_put(w, &sites);
        rc = sites.error;
    }
    if (rc == 0)
        json_object_end(w);
    site_names_release(&sites);
    return rc;
}

/* ---- What becomes of texts --------------------------------------------------------- */

/* Nobody reads more of one; names of hostile length times many paths fill disks. */
enum { TEXT_MOST = 1000 };

struct page_veil {
    bool hides;
    struct hide hide;
};

static size_t cut_length(const char *text)
{
    size_t len = strnlen(text, TEXT_MOST + 1);
    if (len <= TEXT_MOST)
        return len;
    len = TEXT_MOST;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--; /* not in the middle of a character */
    return len;
}

static void veil_text(void *arg, const char *text, struct buf *out)
{
    const struct page_veil *veil = arg;
    const size_t len = cut_length(text);
    struct buf cut = BUF_INIT;
    buf_append(&cut, text, len);
    if (text[len])
        buf_puts(&cut, "\xe2\x80\xa6");
    if (veil->hides)
        hide_text(&veil->hide, cut.data, out);
    else
        buf_append(out, cut.data, cut.len);
    if (cut.error < 0)
        out->error = cut.error;
    buf_release(&cut);
}

static int put_veiled_run(struct json_writer *w, const struct report *report,
                          const struct html_options *options)
{
    struct page_veil page = { .hides = options->hide };
    const struct json_veil veil = { veil_text, &page };
    hide_init(&page.hide, report->run->meta.host, report->run->meta.cwd);
    w->veil = &veil;
    const int rc = put_run(w, report, options);
    w->veil = NULL;
    return rc;
}

int html_document(const struct report *const *reports, size_t count,
                  const struct html_options *options, struct json_writer *w)
{
    int rc = 0;
    json_object_begin(w);
    json_key(w, "schema");
    json_put_string(w, "sonde.app/1");
    json_key(w, "sonde");
    json_put_string(w, SONDE_VERSION);
    json_key(w, "hidden");
    json_put_bool(w, options->hide);
    json_key(w, "runs");
    json_array_begin(w);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = put_veiled_run(w, reports[i], options);
    if (rc < 0)
        return rc;
    json_array_end(w);
    json_object_end(w);
    return 0;
}

static int put_bytes(const char *bytes, size_t len, FILE *out)
{
    errno = 0;
    if (fwrite(bytes, 1, len, out) == len)
        return 0;
    return errno > 0 ? -errno : -EIO;
}

int html_write(const struct report *const *reports, size_t count,
               const struct html_options *options, FILE *out)
{
    const size_t len = (size_t)(sonde_web_page_end - sonde_web_page);
    const char *at = memmem(sonde_web_page, len, marker, sizeof(marker) - 1);
    if (!at)
        return -ENOENT; /* built without the page */
    int rc = put_bytes(sonde_web_page, (size_t)(at - sonde_web_page), out);
    if (rc < 0)
        return rc;

    struct json_writer w;
    json_init_file(&w, out, JSON_STYLE_COMPACT);
    w.html = true;
    w.brief = true;
    rc = html_document(reports, count, options, &w);
    const int finished = rc == 0 ? json_finish(&w) : json_abandon(&w);
    if (rc == 0)
        rc = finished;
    at += sizeof(marker) - 1;
    return rc < 0 ? rc : put_bytes(at, (size_t)(sonde_web_page_end - at), out);
}
