/* codes.c: read code objects out of another process. */
#include "capture/python/codes.h"

#include <stdlib.h>
#include <string.h>

#include "capture/python/lines.h"
#include "capture/python/remote.h"
#include "capture/python/writers.h"
#include "trace/pystack_files.h"
#include "trace/pystack_rows.h"

enum {
    CODES_MAX = 1 << 17,
    TEXT_MAX = 1024, /* characters of a name */
    LINES_MAX = 1 << 18,
    HEAD_MAX = 1024,
};
static const uint64_t CHECK_NS = 2000000000;

void codes_init(struct codes *c, pid_t pid, const struct python_layout *layout)
{
    *c = (struct codes){ .pid = pid, .layout = layout };
}

static void code_release(struct code *code)
{
    free(code->name);
    free(code->file);
    free(code->lines);
}

void codes_release(struct codes *c)
{
    for (size_t i = 0; i < c->count; i++)
        code_release(&c->list[i]);
    free(c->list);
    free(c->hash);
    *c = (struct codes){ 0 };
}

/* ---- Texts -------------------------------------------------------------------------- */

static size_t put_utf8(char *to, uint32_t ch)
{
    if (ch < 0x80) {
        to[0] = (char)ch;
        return 1;
    }
    if (ch < 0x800) {
        to[0] = (char)(0xc0 | ch >> 6);
        to[1] = (char)(0x80 | (ch & 63));
        return 2;
    }
    if (ch < 0x10000) {
        to[0] = (char)(0xe0 | ch >> 12);
        to[1] = (char)(0x80 | (ch >> 6 & 63));
        to[2] = (char)(0x80 | (ch & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | (ch >> 18 & 7));
    to[1] = (char)(0x80 | (ch >> 12 & 63));
    to[2] = (char)(0x80 | (ch >> 6 & 63));
    to[3] = (char)(0x80 | (ch & 63));
    return 4;
}

static char *to_utf8(const uint8_t *data, size_t length, unsigned kind)
{
    char *text = malloc(length * 4 + 1);
    size_t at = 0;
    for (size_t i = 0; text && i < length; i++) {
        uint32_t ch = 0;
        memcpy(&ch, data + i * kind, kind);
        at += put_utf8(text + at, ch);
    }
    if (text)
        text[at] = '\0';
    return text;
}

/* A str object; NULL when it is none we can read. */
static char *read_text(const struct codes *c, uint64_t address)
{
    const struct python_layout *l = c->layout;
    uint8_t head[64], data[TEXT_MAX * 4];
    if (!address || remote_get(c->pid, address, head, sizeof head) < 0)
        return NULL;
    const uint32_t state = half_at(head, sizeof head, l->unicode_state);
    const unsigned kind = state >> 2 & 7;
    const bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    uint64_t length = word_at(head, sizeof head, l->unicode_length);
    if (!compact || (kind != 1 && kind != 2 && kind != 4) || length > 1u << 20)
        return NULL;
    if (length > TEXT_MAX)
        length = TEXT_MAX;
    const uint64_t at = address + (ascii ? l->unicode_ascii : l->unicode_compact);
    if (length && remote_get(c->pid, at, data, length * kind) < 0)
        return NULL;
    return to_utf8(data, length, kind);
}

/* ---- Code objects ------------------------------------------------------------------- */

static bool is_code_type(const struct codes *c, uint64_t type)
{
    enum { TP_NAME = 24 };
    uint64_t name;
    char text[8] = "";
    return remote_get(c->pid, type + TP_NAME, &name, sizeof name) == 0 &&
           remote_get(c->pid, name, text, 5) == 0 && strcmp(text, "code") == 0;
}

static bool read_head(struct codes *c, uint64_t address, uint64_t ret_head[4],
                      uint64_t *ret_qualname)
{
    const struct python_layout *l = c->layout;
    uint8_t bytes[HEAD_MAX];
    const size_t len = l->code_size < sizeof bytes ? l->code_size : sizeof bytes;
    if (!address || address & 7 || remote_get(c->pid, address, bytes, len) < 0)
        return false;
    const uint64_t type = word_at(bytes, len, l->object_type);
    if (c->type ? type != c->type : !is_code_type(c, type))
        return false;
    c->type = type;
    ret_head[0] = word_at(bytes, len, l->code_name);
    ret_head[1] = word_at(bytes, len, l->code_filename);
    ret_head[2] = word_at(bytes, len, l->code_linetable);
    ret_head[3] = half_at(bytes, len, l->code_firstlineno);
    *ret_qualname = l->code_qualname == LAYOUT_NONE
                        ? ret_head[0]
                        : word_at(bytes, len, l->code_qualname);
    return true;
}

static void read_lines(const struct codes *c, struct code *code)
{
    const struct python_layout *l = c->layout;
    uint8_t head[64];
    if (remote_get(c->pid, code->head[2], head, sizeof head) < 0)
        return;
    const uint64_t len = word_at(head, sizeof head, l->bytes_size);
    if (len == 0 || len > LINES_MAX)
        return;
    code->lines = malloc(len);
    if (code->lines &&
        remote_get(c->pid, code->head[2] + l->bytes_data, code->lines, len) == 0)
        code->lines_len = len;
}

/* ---- What it uses ------------------------------------------------------------------- */

/* Two calls for all names of a function: the tuple, then as much of each as says whether it
 * is one of ours. Names beyond NAMES_MAX, long ones and those that are no plain ASCII are
 * none. What cannot be read leaves it unknown. */
enum { NAMES_MAX = REMOTE_PIECES, NAME_BYTES = 64 };

static uint64_t read_names(const struct codes *c, uint64_t code,
                           uint8_t ret_names[NAMES_MAX][NAME_BYTES], bool *ret_known)
{
    const struct python_layout *l = c->layout;
    uint64_t tuple = 0, count = 0, items[NAMES_MAX];
    struct remote_piece pieces[NAMES_MAX];
    *ret_known = false;
    if (remote_get(c->pid, code + l->code_names, &tuple, sizeof tuple) < 0 || !tuple ||
        remote_get(c->pid, tuple + l->tuple_size, &count, sizeof count) < 0 ||
        count > 1u << 20)
        return 0;
    if (count > NAMES_MAX)
        count = NAMES_MAX;
    if (count &&
        remote_get(c->pid, tuple + l->tuple_items, items, count * sizeof *items) < 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct remote_piece){ items[i], ret_names[i], NAME_BYTES };
    *ret_known = count == 0 || remote_read(c->pid, pieces, count) == 0;
    return *ret_known ? count : 0;
}

/* The text of a str object whose first bytes these are; 0: not in them, or not ASCII. */
static size_t short_text(const struct python_layout *l, const uint8_t bytes[NAME_BYTES],
                         char ret_text[NAME_BYTES])
{
    const uint32_t state = half_at(bytes, NAME_BYTES, l->unicode_state);
    const uint64_t length = word_at(bytes, NAME_BYTES, l->unicode_length);
    const bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    if (!compact || !ascii || l->unicode_ascii >= NAME_BYTES ||
        length > (uint64_t)(NAME_BYTES - l->unicode_ascii))
        return 0;
    memcpy(ret_text, bytes + l->unicode_ascii, length);
    return length;
}

static uint32_t flags_of(const struct codes *c, const struct code *code)
{
    uint8_t names[NAMES_MAX][NAME_BYTES];
    char text[NAME_BYTES];
    bool known;
    if (pystack_is_library(code->file))
        return 0;
    const uint64_t count = read_names(c, code->address, names, &known);
    uint32_t flags = known ? PYSTACK_CODE_KNOWN : 0;
    for (size_t i = 0; i < count; i++) {
        const size_t len = short_text(c->layout, names[i], text);
        if (len && writers_has(text, len))
            flags |= PYSTACK_CODE_WRITES;
    }
    return flags;
}

static bool code_read(struct codes *c, uint64_t address, struct code *ret_code)
{
    struct code code = { .address = address };
    uint64_t qualname;
    if (!read_head(c, address, code.head, &qualname))
        return false;
    code.first_line = (int)code.head[3];
    code.name = read_text(c, qualname);
    code.file = read_text(c, code.head[1]);
    if (!code.name || !code.file) {
        code_release(&code);
        return false;
    }
    read_lines(c, &code);
    code.flags = flags_of(c, &code);
    *ret_code = code;
    return true;
}

/* ---- The table ---------------------------------------------------------------------- */

static size_t slot_of(const struct codes *c, uint64_t address)
{
    return (address >> 4) * 0x9e3779b97f4a7c15u >> 20 & (c->hash_size - 1);
}

static void enter(struct codes *c, size_t index)
{
    size_t at = slot_of(c, c->list[index].address);
    while (c->hash[at])
        at = (at + 1) & (c->hash_size - 1);
    c->hash[at] = (uint32_t)index + 1;
}

static bool grow(struct codes *c)
{
    if (c->count < c->cap)
        return true;
    const size_t cap = c->cap ? c->cap * 2 : 256;
    if (cap > CODES_MAX)
        return false;
    struct code *list = realloc(c->list, cap * sizeof *list);
    if (!list)
        return false;
    c->list = list;
    c->cap = cap;
    uint32_t *hash = calloc(cap * 2, sizeof *hash);
    if (!hash)
        return c->hash != NULL && c->count * 2 < c->hash_size;
    free(c->hash);
    c->hash = hash;
    c->hash_size = cap * 2;
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].address)
            enter(c, i);
    return true;
}

static long look_up(const struct codes *c, uint64_t address)
{
    if (!c->hash)
        return -1;
    for (size_t at = slot_of(c, address); c->hash[at];
         at = (at + 1) & (c->hash_size - 1))
        if (c->list[c->hash[at] - 1].address == address)
            return (long)c->hash[at] - 1;
    return -1;
}

/* Modules are run once and their code is freed: its place is soon another function's.
 * What has lived for a while mostly stays. */
static uint64_t check_every_ns(const struct code *code, uint64_t now_ns)
{
    enum { YOUNG_NS = 2000000000, YOUNG_CHECK_NS = 10000000 };
    return now_ns - code->born_ns < YOUNG_NS ? YOUNG_CHECK_NS : CHECK_NS;
}

/* Still the code we know? When not, its samples keep their names, and the address gets a
 * new entry. */
static bool still_good(struct codes *c, long index, uint64_t now_ns)
{
    struct code *code = &c->list[index];
    uint64_t head[4], qualname;
    if (now_ns - code->checked_ns < check_every_ns(code, now_ns))
        return true;
    code->checked_ns = now_ns;
    if (read_head(c, code->address, head, &qualname) &&
        memcmp(head, code->head, sizeof head) == 0)
        return true;
    code->address = 1; /* matches nothing: code objects are aligned */
    return false;
}

long codes_find(struct codes *c, uint64_t address, uint64_t now_ns)
{
    const long known = look_up(c, address);
    if (known >= 0 && still_good(c, known, now_ns))
        return known;
    struct code code;
    if (!grow(c) || !code_read(c, address, &code))
        return -1;
    code.checked_ns = code.born_ns = now_ns;
    c->list[c->count] = code;
    enter(c, c->count);
    return (long)c->count++;
}

/* Callers stand where they stood the last time. */
int codes_line(struct codes *c, long code, int64_t offset)
{
    if (code < 0 || (size_t)code >= c->count)
        return 0;
    struct code *k = &c->list[code];
    if (!k->line_known || k->line_offset != offset) {
        k->line = lines_find(c->layout->lines, k->lines, k->lines_len, k->first_line,
                             offset);
        k->line_offset = offset;
        k->line_known = true;
    }
    return k->line;
}

/* From 3.11 on they are the end of the object, which counts them; before, in a bytes object
 * whose address is at the same place in 3.9 and 3.10. */
static bool find_instructions(const struct codes *c, struct code *k)
{
    enum { OBJECT_SIZE = 16, CODE_BYTES = 48 };
    const struct python_layout *l = c->layout;
    uint64_t object = k->address, count = 0;
    if (l->code_code == LAYOUT_NONE &&
        remote_get(c->pid, k->address + CODE_BYTES, &object, sizeof object) < 0)
        return false;
    if (remote_get(c->pid, object + OBJECT_SIZE, &count, sizeof count) < 0 ||
        count > 1u << 28)
        return false;
    k->instructions_len = l->code_code == LAYOUT_NONE ? count : count * 2;
    k->instructions = object +
                      (l->code_code == LAYOUT_NONE ? l->bytes_data : l->code_code);
    return true;
}

bool codes_instructions(struct codes *c, long code, uint64_t *ret_start,
                        uint64_t *ret_len)
{
    if (code < 0 || (size_t)code >= c->count)
        return false;
    struct code *k = &c->list[code];
    if (!k->instructions && !find_instructions(c, k))
        return false;
    *ret_start = k->instructions;
    *ret_len = k->instructions_len;
    return true;
}
