/* bundle_redact.h: who and what must not leave the machine, taken out of a file of a run.
 * Private to export/. */
#ifndef SONDE_PRESENT_EXPORT_BUNDLE_REDACT_H
#define SONDE_PRESENT_EXPORT_BUNDLE_REDACT_H

#include "base/conceal.h"
#include "present/export/export.h"

struct bundle_redaction {
    struct conceal conceal;
};

void bundle_redaction_init(struct bundle_redaction *redaction, const struct run *run);
/* Changes the file, which must be a copy. SONDE_E_FORMAT: it is not what its name says,
 * and must not travel. */
int bundle_redact(const struct bundle_redaction *redaction, const char *name,
                  const char *path);

#endif
