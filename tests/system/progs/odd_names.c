// link: a
/* odd_names: names, values and numbers of names that nobody expects.
 *
 *     odd_names texts          odd bytes in every place a string can stand
 *     odd_names numbers        values that are no numbers
 *     odd_names names COUNT    COUNT different names, one zone each
 *     odd_names paths COUNT    zone "root" with COUNT different zones inside
 *     odd_names long BYTES     a name of BYTES bytes
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

static const char *const odd[] = {
    "",
    " ",
    "\"quoted\"",
    "back\\slash",
    "line\nbreak",
    "tab\t",
    "\x1b[31mred\x1b[0m",
    "\xff\xfe no utf-8",
    "cut \xe2\x82",
    "\xed\xa0\x80 surrogate",
    "\xf4\x90\x80\x80 high",
    "Ünïcödé › 模型",
    "</script><b>",
    "{\"json\": 1}",
    "a,b;c",
    "\x01\x7f",
    "%s%n%d",
};
enum { ODD = sizeof odd / sizeof *odd };

static void zone(const char *name, const char *component, const char *category,
                 const char *tags)
{
    SONDE_ZONE_OF(sonde_site_named(name, SONDE_FORWARD, component, category, tags)) {}
}

static void texts(void)
{
    for (int i = 0; i < ODD; i++) {
        zone(odd[i], odd[i], odd[i], odd[i]);
        sonde_tag(odd[i], odd[ODD - 1 - i]);
        sonde_param(odd[i], odd[ODD - 1 - i]);
        sonde_metric(odd[i], i);
        sonde_counter(odd[i], i);
        sonde_mark(odd[i]);
        sonde_value(odd[i], i);
        sonde_thread_name(odd[i]);
    }
    zone(NULL, NULL, NULL, NULL);
}

static void numbers(void)
{
    static const double values[] = { 0.0, -0.0, 1e308, 5e-324 };
    SONDE_ZONE("zone", -5) {
        sonde_value("nan", (double)NAN);
        sonde_value("infinity", (double)INFINITY);
        sonde_metric("nan", (double)NAN);
        sonde_metric("minus infinity", -(double)INFINITY);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            sonde_value("extreme", values[i]);
        sonde_step_samples(UINT64_MAX);
    }
    SONDE_ZONE("phase out of range", 1000) {}
}

static void names(long count, int nested)
{
    if (nested)
        sonde_begin(sonde_site_named("root", SONDE_OTHER, NULL, NULL, NULL));
    for (long i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "name %ld", i);
        zone(name, NULL, NULL, NULL);
    }
    if (nested)
        sonde_end(sonde_site_named("root", SONDE_OTHER, NULL, NULL, NULL));
}

static void long_name(size_t bytes)
{
    char *name = malloc(bytes + 1);
    if (!name)
        exit(3);
    memset(name, 'x', bytes);
    name[bytes] = '\0';
    zone(name, NULL, NULL, NULL);
    zone(name, NULL, NULL, NULL);
    free(name);
}

int main(int argc, char **argv)
{
    const long count = argc > 2 ? atol(argv[2]) : 0;
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "texts") == 0)
        texts();
    else if (strcmp(argv[1], "numbers") == 0)
        numbers();
    else if (strcmp(argv[1], "names") == 0)
        names(count, 0);
    else if (strcmp(argv[1], "paths") == 0)
        names(count, 1);
    else if (strcmp(argv[1], "long") == 0)
        long_name((size_t)count);
    else
        return 2;
    SONDE_ZONE("last", SONDE_OTHER) {}
    return 0;
}
