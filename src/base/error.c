/* error.c: results as text.
 *
 * Threads: any. strerror() is not thread-safe everywhere, so errno values go
 * through strerror_r into a thread-local buffer.
 */
#include "base/error.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int rc;
    const char *text;
} own_errors[] = {
#define SONDE_ERROR_ROW(name, value, text) { value, text },
    SONDE_ERRORS(SONDE_ERROR_ROW)
#undef SONDE_ERROR_ROW
};

static const char *system_text(int err)
{
    static _Thread_local char text[128];
    char scratch[128]; /* strerror_r may or may not use it */

    (void)snprintf(text, sizeof(text), "%s", strerror_r(err, scratch, sizeof(scratch)));
    /* "No such file" reads badly in the middle of a sentence; "RPC ..." does not. */
    if (isupper((unsigned char)text[0]) && !isupper((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

const char *error_text(int rc)
{
    if (rc >= 0)
        return "success";
    for (size_t i = 0; i < sizeof(own_errors) / sizeof(own_errors[0]); i++)
        if (own_errors[i].rc == rc)
            return own_errors[i].text;
    if (rc <= SONDE_E_FORMAT)
        return "unknown error";
    return system_text(-rc);
}
