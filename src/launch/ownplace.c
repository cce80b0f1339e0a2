/* ownplace.c: files that come with the command, and variables that name them. */
#include "launch/ownplace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool own_folder(char *ret_path, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", ret_path, size - 1);
    if (n <= 0)
        return false;
    ret_path[n] = '\0';
    char *slash = strrchr(ret_path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

static bool take(const char *path, char *ret_path, size_t size)
{
    char whole[PATH_MAX];
    if (access(path, R_OK) < 0 || !realpath(path, whole) || strlen(whole) >= size)
        return false;
    (void)snprintf(ret_path, size, "%s", whole);
    return true;
}

bool ownplace_find(const char *given, const char *const *places, char *ret_path,
                   size_t size)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (given && *given)
        return take(given, ret_path, size);
    if (!own_folder(folder, sizeof folder))
        return false;
    for (size_t i = 0; places[i]; i++) {
        const int n = snprintf(path, sizeof path, places[i], folder);
        if (n > 0 && (size_t)n < sizeof path && take(path, ret_path, size))
            return true;
    }
    return false;
}

int ownplace_prepend(const char *name, const char *first, char separator)
{
    const char *old = getenv(name);
    char *value = NULL;
    if (!old || !*old)
        return setenv(name, first, 1) < 0 ? -errno : 0;
    if (asprintf(&value, "%s%c%s", first, separator, old) < 0)
        return -ENOMEM;
    const int rc = setenv(name, value, 1) < 0 ? -errno : 0;
    free(value);
    return rc;
}
