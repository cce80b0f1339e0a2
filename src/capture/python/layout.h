/* layout.h: where things are inside a Python interpreter, seen from outside.
 *
 * CPython 3.9 to 3.12 have tables here, read off the headers of each version with
 * offsetof (x86-64 and aarch64 Linux agree). From 3.13 on the interpreter carries its own
 * table, _Py_DebugOffsets, at the start of _PyRuntime. Anything else, and free-threaded
 * builds, is unavailable: guessing would show wrong code. */
#ifndef SONDE_CAPTURE_PYTHON_LAYOUT_H
#define SONDE_CAPTURE_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAYOUT_NONE = UINT16_MAX };

/* How the place of a frame becomes a line. */
enum line_table {
    LINES_LNOTAB,    /* 3.9: pairs of increments */
    LINES_PEP626,    /* 3.10: the same with gaps */
    LINES_LOCATIONS, /* 3.11 and later */
};

struct python_layout {
    unsigned minor; /* of version 3 */
    enum line_table lines;
    uint16_t runtime_interpreters;
    uint16_t interp_next, interp_threads;
    uint16_t interp_collecting;      /* an int: a collection is going on */
    uint16_t runtime_gil;            /* the lock in the runtime (≤ 3.11) … */
    uint16_t interp_gil;             /* … or a pointer to it in the interpreter */
    uint16_t gil_holder, gil_locked; /* pointer, int */
    uint16_t thread_next, thread_id, thread_native_id, thread_size;
    uint16_t thread_frame; /* the frame, or with … */
    uint16_t cframe_frame; /* … this, a struct whose field here is the frame */
    uint16_t thread_chunk; /* memory that holds the frames (≥ 3.11) */
    uint16_t frame_previous, frame_code, frame_owner, frame_size;
    uint16_t frame_instr; /* address of an instruction (≥ 3.11) … */
    uint16_t frame_lasti; /* … or an index into the code */
    uint16_t code_filename, code_name, code_qualname, code_firstlineno, code_linetable;
    uint16_t code_code;  /* the instructions themselves (≥ 3.11) */
    uint16_t code_names; /* a tuple: globals and attributes it uses */
    uint16_t tuple_size, tuple_items;
    uint16_t code_size;
    uint16_t bytes_size, bytes_data;
    uint16_t unicode_length, unicode_state, unicode_ascii, unicode_compact;
    uint16_t object_type;
    unsigned
        owner_c_stack; /* frame_owner of entries that are no Python code; 255 none */
};

/* The table of a version, NULL when there is none. */
const struct python_layout *layout_of(unsigned minor);
/* From the first bytes of _PyRuntime of 3.13 and later. SONDE_E_UNSUPPORTED for
 * free-threaded builds and tables that make no sense. */
int layout_from_runtime(const uint8_t *runtime, size_t len, unsigned minor,
                        struct python_layout *ret_layout);
/* Bytes of _PyRuntime that layout_from_runtime() wants. */
enum { LAYOUT_RUNTIME_BYTES = 1024 };

#endif
