/* temp.c: temperatures, of hwmon chips and of thermal zones where there are no chips.
 *
 * Reading a sensor may take a millisecond of somebody's bus: once a second is enough
 * for something that changes slowly.
 */
#include "capture/monitor/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "capture/monitor/kept.h"

enum { SENSORS_MOST = 64, PER_CHIP = 32, NAME_LEN = 64 };

struct temp {
    size_t count;
    struct {
        int fd;
        char name[NAME_LEN];
    } sensor[SENSORS_MOST];
};

static void read_name(const char *root, const char *folder, const char *file,
                      char ret_name[24])
{
    struct scan s;
    char buffer[64];
    int fd = kept_open(root, "%s/%s", folder, file);
    ret_name[0] = '\0';
    if (kept_read(fd, buffer, sizeof buffer, &s)) {
        buffer[strcspn(buffer, "\n")] = '\0';
        (void)snprintf(ret_name, 24, "%.23s", buffer);
    }
    kept_close(&fd);
}

/* Several chips of one kind (two sockets) are told apart by their number. */
static bool is_taken(const struct temp *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->sensor[i].name, name) == 0)
            return true;
    return false;
}

static void keep(struct temp *t, int fd, const char *name, const char *folder)
{
    double value;
    if (t->count == SENSORS_MOST || !kept_number(fd, &value)) {
        kept_close(&fd); /* some exist and cannot be read: no device behind them */
        return;
    }
    char *own = t->sensor[t->count].name;
    (void)snprintf(own, NAME_LEN, "%s", name);
    if (is_taken(t, own)) {
        const char *digits = folder + strcspn(folder, "0123456789");
        (void)snprintf(own, NAME_LEN, "%.40s #%.10s", name, digits);
    }
    t->sensor[t->count++].fd = fd;
}

static void open_chip(struct temp *t, const char *root, const char *folder)
{
    char chip[24], label[24], file[32], name[NAME_LEN];
    read_name(root, folder, "name", chip);
    for (unsigned i = 1; i <= PER_CHIP; i++) {
        int fd = kept_open(root, "%s/temp%u_input", folder, i);
        if (fd < 0)
            continue;
        (void)snprintf(file, sizeof file, "temp%u_label", i);
        read_name(root, folder, file, label);
        if (label[0])
            (void)snprintf(name, sizeof name, "%s %s", chip, label);
        else
            (void)snprintf(name, sizeof name, "%s temp%u", chip, i);
        keep(t, fd, name, folder);
    }
}

static void open_zone(struct temp *t, const char *root, const char *folder)
{
    char type[24];
    read_name(root, folder, "type", type);
    const int fd = kept_open(root, "%s/temp", folder);
    if (fd >= 0)
        keep(t, fd, type[0] ? type : folder, folder);
}

static void open_all(struct temp *t, const char *sys, const char *class,
                     const char *prefix,
                     void (*open_one)(struct temp *, const char *, const char *))
{
    char root[512];
    (void)snprintf(root, sizeof root, "%s/class/%s", sys, class);
    struct dirent **names = NULL;
    const int count = scandir(root, &names, NULL, versionsort);
    for (int i = 0; i < count; i++) {
        if (strncmp(names[i]->d_name, prefix, strlen(prefix)) == 0)
            open_one(t, root, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

static void temp_close(void *state)
{
    struct temp *t = state;
    for (size_t i = 0; t && i < t->count; i++)
        kept_close(&t->sensor[i].fd);
    free(t);
}

static int temp_open(const struct monitor_roots *roots, void **ret_state,
                     const char **ret_why)
{
    struct temp *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    open_all(t, sys_root(roots), "hwmon", "hwmon", open_chip);
    if (t->count == 0) /* zones mostly show the same chips once more */
        open_all(t, sys_root(roots), "thermal", "thermal_zone", open_zone);
    if (t->count == 0) {
        *ret_why =
            "no temperature sensors (virtual machine, or no hwmon driver loaded)";
        temp_close(t);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_state = t;
    return 0;
}

static void temp_sample(void *state, const struct monitor_round *round,
                        struct monitor_sink *sink)
{
    struct temp *t = state;
    (void)round;
    for (size_t i = 0; i < t->count; i++) {
        double millidegrees;
        if (kept_number(t->sensor[i].fd, &millidegrees))
            sink->set(sink, "temperature", t->sensor[i].name, "C", millidegrees / 1000);
    }
}

const struct monitor_ops monitor_temp = {
    .name = "temp",
    .what = "temperatures (hwmon, thermal zones)",
    .open = temp_open,
    .sample = temp_sample,
    .close = temp_close,
    .slowest_ns = 1000000000,
};
