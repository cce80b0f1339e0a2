/* machine.c: the computer a run takes place on. */
#include "trace/machine.h"

#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The value of the first "key : value" line of a /proc file; "" when absent. Stops
 * there: the cpuinfo of a large machine is long and slow to produce. */
static void read_field(const char *path, const char *key, char *ret_value, size_t size)
{
    ret_value[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    char line[512];
    const size_t len = strlen(key);
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, len) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        (void)snprintf(ret_value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    (void)fclose(file);
}

/* More than 1,024 processors do not fit a cpu_set_t: then all that are online. */
static int usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 0;
}

void machine_read(struct machine *ret_machine)
{
    *ret_machine = (struct machine){ .memory_mb = NAN };
    if (gethostname(ret_machine->host, sizeof ret_machine->host - 1) != 0)
        ret_machine->host[0] = '\0';
    read_field("/proc/cpuinfo", "model name", ret_machine->cpu,
               sizeof ret_machine->cpu);
    ret_machine->cores = usable_cores();
    char total[64];
    read_field("/proc/meminfo", "MemTotal", total, sizeof total);
    if (isdigit((unsigned char)total[0]))
        ret_machine->memory_mb = strtod(total, NULL) / 1024;
}
