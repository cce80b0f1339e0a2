/* packtexts.h: the texts of a compacted trace, changed where they lie. */
#ifndef SONDE_TRACE_PACKTEXTS_H
#define SONDE_TRACE_PACKTEXTS_H

#include "trace/tables.h"

/* Calls `edit` for every name, file, tag … of the sites and brings the section's checksum
 * in line. How many were changed; SONDE_E_FORMAT: no compacted trace (compact_file()). */
int pack_edit_texts(const char *path, text_edit_fn *edit, void *arg);

#endif
