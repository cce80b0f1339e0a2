/* sites_test.c: names get numbers, the same ones each time, and there is an end to
 * them that is counted. */
#include <pthread.h>

#include "recorded.h"
#include "trace/format.h"

/* ---- The same and others ---------------------------------------------------------- */

static void the_same_words_give_the_same_site(void **state)
{
    (void)state;
    char name[] = "forward";
    struct sonde_site *a = sonde_site_named(name, SONDE_FORWARD, "net", "gpu", "k=v");
    memset(name, 'x', sizeof name - 1); /* names are copied */
    struct sonde_site *b = sonde_site_named("forward", SONDE_FORWARD, "net", "gpu",
                                            "k=v");
    assert_ptr_equal(a, b);
    assert_string_equal(a->name, "forward");
    assert_string_equal(a->component, "net");
    assert_string_equal(a->category, "gpu");
    assert_string_equal(a->tags, "k=v");
    assert_int_equal(a->phase, SONDE_FORWARD);
    assert_true(a->id >= FIRST_SITE);
}

static void anything_else_gives_another_site(void **state)
{
    (void)state;
    const struct sonde_site *sites[] = {
        sonde_site_named("a", SONDE_FORWARD, "c", "g", "t"),
        sonde_site_named("b", SONDE_FORWARD, "c", "g", "t"),
        sonde_site_named("a", SONDE_BACKWARD, "c", "g", "t"),
        sonde_site_named("a", SONDE_FORWARD, "d", "g", "t"),
        sonde_site_named("a", SONDE_FORWARD, "c", "h", "t"),
        sonde_site_named("a", SONDE_FORWARD, "c", "g", "u"),
        sonde_site_named("a", SONDE_FORWARD, NULL, "g", "t"),
        sonde_site_named("a", SONDE_FORWARD, NULL, NULL, NULL),
        sonde_site_named("", SONDE_FORWARD, NULL, NULL, NULL),
    };
    enum { COUNT = sizeof sites / sizeof sites[0] };
    for (unsigned i = 0; i < COUNT; i++)
        for (unsigned k = 0; k < i; k++)
            assert_true(sites[i] != sites[k] && sites[i]->id != sites[k]->id);
    /* Nothing and the empty string are the same. */
    assert_ptr_equal(sonde_site_named("a", SONDE_FORWARD, "", "", ""), sites[7]);
    assert_ptr_equal(sonde_site_named(NULL, SONDE_FORWARD, NULL, NULL, NULL), sites[8]);
}

/* A phase that is none must not make a new site at each call. */
static void strange_phases_are_the_same_each_time(void **state)
{
    (void)state;
    static const int phases[] = { -1, -32768, 65536, 70000, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        assert_ptr_equal(sonde_site_named("odd", phases[i], NULL, NULL, NULL),
                         sonde_site_named("odd", phases[i], NULL, NULL, NULL));
}

/* ---- Long names ------------------------------------------------------------------- */

static void fill(char *text, size_t len, char last)
{
    memset(text, 'n', len);
    text[len - 1] = last;
    text[len] = '\0';
}

static void long_names_are_cut_with_an_ellipsis(void **state)
{
    (void)state;
    char text[5000];
    for (size_t len = MAX_NAME - 8; len < MAX_NAME + 8; len++) {
        fill(text, len, 'n');
        const struct sonde_site *site = sonde_site_named(text, 0, NULL, NULL, NULL);
        const size_t kept = strlen(site->name);
        assert_true(kept < MAX_NAME);
        if (len <= MAX_NAME - 4) {
            assert_string_equal(site->name, text);
            continue;
        }
        assert_int_equal(kept, MAX_NAME - 1);
        assert_string_equal(site->name + kept - 3, "…");
        assert_memory_equal(site->name, text, kept - 3);
    }
}

static void characters_are_not_cut_in_two(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 3; shift++) {
        char text[4096] = "";
        memset(text, 'n', shift);
        while (strlen(text) < 2000)
            strcat(text, "€"); /* three bytes */
        const struct sonde_site *site = sonde_site_named(text, 0, NULL, NULL, NULL);
        assert_int_equal((strlen(site->name) - shift) % 3, 0);
        assert_ptr_equal(sonde_site_named(text, 0, NULL, NULL, NULL), site);
    }
}

static void a_long_name_is_the_same_site_each_time(void **state)
{
    (void)state;
    char text[5000];
    const size_t lengths[] = { 1019, 1020, 1021, 1022, 1023, 1024, 1025, 1030, 4000 };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        fill(text, lengths[i], 'x');
        const struct sonde_site *first = sonde_site_named(text, 0, text, text, text);
        for (unsigned k = 0; k < 3; k++)
            assert_ptr_equal(sonde_site_named(text, 0, text, text, text), first);
    }
    /* What differs only behind the cut is the same to the reader, and to us. */
    fill(text, 4000, 'x');
    const struct sonde_site *first = sonde_site_named(text, 0, NULL, NULL, NULL);
    fill(text, 4000, 'y');
    assert_ptr_equal(sonde_site_named(text, 0, NULL, NULL, NULL), first);
}

/* ---- In the file ------------------------------------------------------------------ */

static void a_site_made_before_the_session_is_in_its_file(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_site *site = sonde_site_named("early", SONDE_SYNC, "c", "g", "k=v");
    recorded_start(&r, NULL);
    SONDE_ZONE_OF(site) {}
    SONDE_ZONE("late", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "early"), 1);
    assert_int_equal(recorded_zones(&r, "late"), 1);
    const struct trace_site *s = trace_site(r.trace,
                                            recorded_node(&r, "early", NULL)->site);
    assert_string_equal(s->component, "c");
    assert_string_equal(s->category, "g");
    assert_string_equal(s->tags, "k=v");
    assert_int_equal(s->phase, SONDE_SYNC);
    s = trace_site(r.trace, recorded_node(&r, "late", NULL)->site);
    assert_non_null(strstr(s->file, "sites_test.c"));
    assert_true(s->line > 100);
    recorded_release(&r);
}

static void tags_and_parameters_are_kept(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    sonde_tag("team", "x");
    sonde_param("batch", "32");
    sonde_param("batch", "64");
    SONDE_ZONE("z", 0) {}
    recorded_stop(&r);
    unsigned tags = 0;
    const char *batch = "";
    for (unsigned i = 0; i < trace_site_count(r.trace); i++) {
        const struct trace_site *s = trace_site(r.trace, i);
        tags += (s->flags & SITE_TAG) && strcmp(s->name, "team") == 0 &&
                strcmp(s->tags, "x") == 0;
        if ((s->flags & SITE_PARAM) && strcmp(s->name, "batch") == 0)
            batch = s->tags;
    }
    assert_int_equal(tags, 1);
    assert_string_equal(batch, "64");
    recorded_release(&r);
}

/* ---- The end of them -------------------------------------------------------------- */

/* These fill the registry of the process for good, so they run in children. */

static bool the_limit_gives_other_names(void)
{
    struct recorded r;
    enum { MORE = 100 };
    char name[32];
    unsigned others = 0;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < MAX_SITES + MORE; i++) {
        (void)snprintf(name, sizeof name, "name %u", i);
        struct sonde_site *site = sonde_site_named(name, 0, NULL, NULL, NULL);
        if (strcmp(site->name, "(other names)") != 0)
            continue;
        others++;
        SONDE_ZONE_OF(site) {}
    }
    recorded_stop(&r);
    const uint64_t lost = trace_info(r.trace)->names_lost;
    const bool good = others >= MORE && lost == others &&
                      recorded_zones(&r, "(other names)") == others &&
                      trace_site_count(r.trace) == MAX_SITES;
    if (!good)
        print_message("%u others, %llu lost\n", others, (unsigned long long)lost);
    recorded_release(&r);
    return good;
}

static void past_the_limit_names_are_counted(void **state)
{
    (void)state;
    assert_true(in_child(the_limit_gives_other_names));
}

static bool no_room_gives_other_names(void)
{
    struct recorded r;
    char name[1000];
    unsigned others = 0, kept = 0;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < 5000; i++) {
        fill(name, 990, 'x');
        (void)snprintf(name, 12, "%010u", i);
        name[10] = 'x';
        struct sonde_site *site = sonde_site_named(name, 0, NULL, NULL, NULL);
        others += site->id == SITE_OTHER;
        kept += site->id != SITE_OTHER;
    }
    recorded_stop(&r);
    const bool good = kept > 4000 && others > 500 &&
                      trace_info(r.trace)->names_lost == others;
    recorded_release(&r);
    return good;
}

static void without_room_for_strings_names_are_counted(void **state)
{
    (void)state;
    assert_true(in_child(no_room_gives_other_names));
}

/* ---- From many threads ------------------------------------------------------------ */

enum { THREADS = 8, NAMES = 200 };
static struct sonde_site *found[THREADS][NAMES];

static void *intern_all(void *arg)
{
    const size_t me = (size_t)arg;
    char name[32];
    for (unsigned i = 0; i < NAMES; i++) {
        const unsigned n = (i * 7 + (unsigned)me * 31) % NAMES;
        (void)snprintf(name, sizeof name, "shared %u", n);
        found[me][n] = sonde_site_named(name, 0, NULL, NULL, NULL);
    }
    return NULL;
}

static bool threads_agree(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, intern_all, (void *)i) != 0)
            return false;
    for (size_t i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    for (unsigned n = 0; n < NAMES; n++) {
        char name[32];
        (void)snprintf(name, sizeof name, "shared %u", n);
        if (strcmp(found[0][n]->name, name) != 0)
            return false;
        for (unsigned i = 1; i < THREADS; i++)
            if (found[i][n] != found[0][n])
                return false;
        for (unsigned k = 0; k < n; k++)
            if (found[0][k] == found[0][n])
                return false;
    }
    return true;
}

static void threads_get_the_same_sites(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++) /* in a child theirs are the first names of all */
        assert_true(in_child(threads_agree));
    assert_true(threads_agree());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_get_the_same_sites), /* first: nothing is set up yet */
        cmocka_unit_test(the_same_words_give_the_same_site),
        cmocka_unit_test(anything_else_gives_another_site),
        cmocka_unit_test(strange_phases_are_the_same_each_time),
        cmocka_unit_test(long_names_are_cut_with_an_ellipsis),
        cmocka_unit_test(characters_are_not_cut_in_two),
        cmocka_unit_test(a_long_name_is_the_same_site_each_time),
        cmocka_unit_test(a_site_made_before_the_session_is_in_its_file),
        cmocka_unit_test(tags_and_parameters_are_kept),
        cmocka_unit_test(past_the_limit_names_are_counted),
        cmocka_unit_test(without_room_for_strings_names_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
