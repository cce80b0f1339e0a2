/* layout.c: the tables. */
#include "capture/python/layout.h"

#include <string.h>

#include "base/error.h"

/* What all versions with tables share. */
#define COMMON                                                                         \
    .interp_next = 0, .gil_holder = 8, .gil_locked = 16, .thread_next = 8,             \
    .bytes_size = 16, .bytes_data = 32, .unicode_length = 16, .unicode_state = 32,     \
    .tuple_size = 16, .tuple_items = 24, .object_type = 8

static const struct python_layout layouts[] = {
    {
        COMMON,
        .minor = 9,
        .lines = LINES_LNOTAB,
        .runtime_interpreters = 32,
        .interp_threads = 8,
        .interp_collecting = 816,
        .runtime_gil = 352,
        .interp_gil = LAYOUT_NONE,
        .thread_id = 176,
        .thread_native_id = LAYOUT_NONE,
        .thread_size = 264,
        .thread_frame = 24,
        .cframe_frame = LAYOUT_NONE,
        .thread_chunk = LAYOUT_NONE,
        .frame_previous = 24,
        .frame_code = 32,
        .frame_owner = LAYOUT_NONE,
        .frame_size = 112,
        .frame_instr = LAYOUT_NONE,
        .frame_lasti = 104,
        .code_filename = 104,
        .code_name = 112,
        .code_qualname = LAYOUT_NONE,
        .code_firstlineno = 40,
        .code_linetable = 120,
        .code_code = LAYOUT_NONE,
        .code_names = 64,
        .code_size = 176,
        .unicode_ascii = 48,
        .unicode_compact = 72,
        .owner_c_stack = 255,
    },
    {
        COMMON,
        .minor = 10,
        .lines = LINES_PEP626,
        .runtime_interpreters = 32,
        .interp_threads = 8,
        .interp_collecting = 816,
        .runtime_gil = 352,
        .interp_gil = LAYOUT_NONE,
        .thread_id = 176,
        .thread_native_id = LAYOUT_NONE,
        .thread_size = 280,
        .thread_frame = 24,
        .cframe_frame = LAYOUT_NONE,
        .thread_chunk = LAYOUT_NONE,
        .frame_previous = 24,
        .frame_code = 32,
        .frame_owner = LAYOUT_NONE,
        .frame_size = 104,
        .frame_instr = LAYOUT_NONE,
        .frame_lasti = 96,
        .code_filename = 104,
        .code_name = 112,
        .code_qualname = LAYOUT_NONE,
        .code_firstlineno = 40,
        .code_linetable = 120,
        .code_code = LAYOUT_NONE,
        .code_names = 64,
        .code_size = 176,
        .unicode_ascii = 48,
        .unicode_compact = 72,
        .owner_c_stack = 255,
    },
    {
        COMMON,
        .minor = 11,
        .lines = LINES_LOCATIONS,
        .runtime_interpreters = 40,
        .interp_threads = 16,
        .interp_collecting = 848,
        .runtime_gil = 360,
        .interp_gil = LAYOUT_NONE,
        .thread_id = 152,
        .thread_native_id = 160,
        .thread_size = 360,
        .thread_frame = 56,
        .cframe_frame = 8,
        .thread_chunk = 296,
        .frame_previous = 48,
        .frame_code = 32,
        .frame_owner = 69,
        .frame_size = 72,
        .frame_instr = 56,
        .frame_lasti = LAYOUT_NONE,
        .code_filename = 112,
        .code_name = 120,
        .code_qualname = 128,
        .code_firstlineno = 72,
        .code_linetable = 136,
        .code_code = 184,
        .code_names = 32,
        .code_size = 192,
        .unicode_ascii = 48,
        .unicode_compact = 72,
        .owner_c_stack = 255,
    },
    {
        COMMON,
        .minor = 12,
        .lines = LINES_LOCATIONS,
        .runtime_interpreters = 40,
        .interp_threads = 72,
        .interp_collecting = 312,
        .runtime_gil = LAYOUT_NONE,
        .interp_gil = 384,
        .thread_id = 136,
        .thread_native_id = 144,
        .thread_size = 288,
        .thread_frame = 56,
        .cframe_frame = 0,
        .thread_chunk = 232,
        .frame_previous = 8,
        .frame_code = 0,
        .frame_owner = 70,
        .frame_size = 72,
        .frame_instr = 56,
        .frame_lasti = LAYOUT_NONE,
        .code_filename = 112,
        .code_name = 120,
        .code_qualname = 128,
        .code_firstlineno = 68,
        .code_linetable = 136,
        .code_code = 192,
        .code_names = 32,
        .code_size = 200,
        .unicode_ascii = 40,
        .unicode_compact = 56,
        .owner_c_stack = 3,
    },
};

const struct python_layout *layout_of(unsigned minor)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].minor == minor)
            return &layouts[i];
    return NULL;
}

/* ---- 3.13 and later ---------------------------------------------------------------- */

/* Words of _Py_DebugOffsets of 3.13, counted from its start. */
enum {
    W_VERSION = 1,
    W_FREE_THREADED = 2,
    W_RUNTIME_INTERPRETERS = 5,
    W_INTERP = 6, /* size id next threads gc … */
    W_INTERP_NEXT = 8,
    W_INTERP_THREADS = 9,
    W_INTERP_GC = 10,
    W_INTERP_CEVAL_GIL = 14,
    W_INTERP_GIL_STATE = 15,
    W_INTERP_GIL_LOCKED = 17,
    W_INTERP_GIL_HOLDER = 18,
    W_THREAD = 19,  /* size prev next interp frame id native_id chunk status */
    W_FRAME = 28,   /* size previous executable instr localsplus owner */
    W_CODE = 34,    /* size filename name qualname linetable firstlineno argcount … */
    W_OBJECT = 44,  /* size type */
    W_TYPE = 46,    /* size name repr flags */
    W_TUPLE = 50,   /* 3 */
    W_LIST = 53,    /* 3 */
    W_DICT = 56,    /* 3 */
    W_FLOAT = 59,   /* 2 */
    W_LONG = 61,    /* 3 */
    W_BYTES = 64,   /* size ob_size ob_sval */
    W_UNICODE = 67, /* size state length asciiobject_size */
    W_GC = 71,      /* size collecting */
    W_COUNT = 73,
};

struct words {
    uint64_t word[W_COUNT];
    bool good;
};

static uint16_t take(struct words *w, unsigned at)
{
    if (w->word[at] >= 32768)
        w->good = false;
    return (uint16_t)w->word[at];
}

int layout_from_runtime(const uint8_t *runtime, size_t len, unsigned minor,
                        struct python_layout *ret_layout)
{
    struct words w = { .good = true };
    if (minor != 13 || len < sizeof w.word || memcmp(runtime, "xdebugpy", 8) != 0)
        return SONDE_E_UNSUPPORTED;
    memcpy(w.word, runtime, sizeof w.word);
    if (w.word[W_FREE_THREADED] || (w.word[W_VERSION] >> 16) != (0x0300u | minor))
        return SONDE_E_UNSUPPORTED;
    struct python_layout l = {
        .minor = minor,
        .lines = LINES_LOCATIONS,
        .runtime_interpreters = take(&w, W_RUNTIME_INTERPRETERS),
        .interp_next = take(&w, W_INTERP_NEXT),
        .interp_threads = take(&w, W_INTERP_THREADS),
        .interp_gil = take(&w, W_INTERP_CEVAL_GIL),
        .runtime_gil = LAYOUT_NONE,
        /* Of the lock embedded in the interpreter; ceval_gil points to one like it. */
        .gil_locked = (uint16_t)(take(&w, W_INTERP_GIL_LOCKED) -
                                 take(&w, W_INTERP_GIL_STATE)),
        .gil_holder = (uint16_t)(take(&w, W_INTERP_GIL_HOLDER) -
                                 take(&w, W_INTERP_GIL_STATE)),
        .interp_collecting = (uint16_t)(take(&w, W_INTERP_GC) + take(&w, W_GC + 1)),
        .thread_size = take(&w, W_THREAD),
        .thread_next = take(&w, W_THREAD + 2),
        .thread_frame = take(&w, W_THREAD + 4),
        .cframe_frame = LAYOUT_NONE,
        .thread_id = take(&w, W_THREAD + 5),
        .thread_native_id = take(&w, W_THREAD + 6),
        .thread_chunk = take(&w, W_THREAD + 7),
        .frame_previous = take(&w, W_FRAME + 1),
        .frame_code = take(&w, W_FRAME + 2),
        .frame_instr = take(&w, W_FRAME + 3),
        .frame_lasti = LAYOUT_NONE,
        .frame_size = take(&w, W_FRAME + 4),
        .frame_owner = take(&w, W_FRAME + 5),
        .code_size = take(&w, W_CODE),
        .code_filename = take(&w, W_CODE + 1),
        .code_name = take(&w, W_CODE + 2),
        .code_qualname = take(&w, W_CODE + 3),
        .code_linetable = take(&w, W_CODE + 4),
        .code_firstlineno = take(&w, W_CODE + 5),
        .code_code = take(&w, W_CODE + 9),
        .code_names = 32, /* not in the table; where it has been since 3.11 */
        .tuple_items = take(&w, W_TUPLE + 1),
        .tuple_size = take(&w, W_TUPLE + 2),
        .object_type = take(&w, W_OBJECT + 1),
        .bytes_size = take(&w, W_BYTES + 1),
        .bytes_data = take(&w, W_BYTES + 2),
        .unicode_state = take(&w, W_UNICODE + 1),
        .unicode_length = take(&w, W_UNICODE + 2),
        .unicode_ascii = take(&w, W_UNICODE + 3),
        .unicode_compact = (uint16_t)(take(&w, W_UNICODE + 3) + 16),
        .owner_c_stack = 3,
    };
    if (!w.good || l.thread_size > 1024 || l.frame_size > 256 || l.code_size > 1024 ||
        l.frame_owner >= l.frame_size)
        return SONDE_E_UNSUPPORTED;
    *ret_layout = l;
    return 0;
}
