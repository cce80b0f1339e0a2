/* hints.c: what somebody inside the program knew about its end. */
#include "launch/hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"

enum { HINTS_MAX_BYTES = 1 << 20 };

static const char *const causes[] = { "oom_gpu",   "shm_exhausted", "disk_full",
                                      "preempted", "worker_died",   "oom_host" };

static const char *known_cause(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strlen(causes[i]) == len && memcmp(causes[i], word, len) == 0)
            return causes[i];
    return NULL;
}

static bool is_kin(const struct kin *kin, pid_t pid)
{
    for (size_t i = 0; i < kin->count; i++)
        if ((pid_t)kin->process[i].pid == pid)
            return true;
    return false;
}

static void take_line(const char *line, const struct kin *kin, struct hint *ret_hint)
{
    char *word;
    const pid_t pid = (pid_t)strtol(line, &word, 10);
    if (word == line || *word != ' ')
        return;
    word++;
    const size_t len = strcspn(word, " ");
    const char *cause = known_cause(word, len);
    if (!cause || !is_kin(kin, pid))
        return;
    *ret_hint = (struct hint){ .pid = pid, .cause = cause };
    (void)snprintf(ret_hint->text, sizeof ret_hint->text, "%s",
                   word[len] ? word + len + 1 : "");
}

void hints_read(const char *dir, const struct kin *kin, struct hint *ret_hint)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    path_join(&path, dir, HINTS_NAME);
    char *save = NULL;
    if (path.error == 0 && file_read_all(path.data, HINTS_MAX_BYTES, &text) == 0)
        for (char *line = strtok_r(text.data, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save))
            take_line(line, kin, ret_hint);
    buf_release(&path);
    buf_release(&text);
}
