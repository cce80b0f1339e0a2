/* facts.c: see facts.h. The readers of one kind of thing each are in facts_*.c. */
#include "analyse/facts.h"

#include <errno.h>
#include <math.h>

#include "analyse/fact_parts.h"
#include "analyse/fits.h"
#include "analyse/report.h"

const struct fact_info fact_infos[FACT_COUNT] = {
    [FACT_NONE] = { "", "", "" },
#define FACT(name, metric, unit, source) [FACT_##name] = { metric, unit, source },
#include "analyse/fact_list.h"
#undef FACT
};

void facts_init(struct facts *facts)
{
    for (int i = 0; i < FACT_COUNT; i++)
        facts->v[i] = NAN, facts->source[i] = NULL;
    for (int i = 0; i < PLACE_COUNT; i++)
        facts->place[i] = "";
}

void fact_place(struct report *r, struct facts *f, enum fact_place place,
                const struct buf *text)
{
    const char *copy = text->error || !text->len ? NULL
                                                 : arena_strdup(&r->arena, text->data);
    if (copy)
        f->place[place] = copy;
}

int facts_read(struct report *report, struct facts *ret_facts)
{
    facts_init(ret_facts);
    facts_of_time(report, ret_facts);
    facts_of_machine(report, ret_facts);
    facts_of_memory(report, ret_facts);
    facts_of_python(report, ret_facts);
    facts_of_loader(report, ret_facts); /* what the loader says wins over zones */
    facts_of_files(report, ret_facts);
    facts_of_shapes(report, ret_facts);
    facts_of_lengths(report, ret_facts);
    facts_of_hand(report, ret_facts); /* where no loader is: after files */
    facts_of_own(report, ret_facts);
    facts_of_native(report, ret_facts);
    facts_of_cards(report, ret_facts);
    facts_of_fits(report, ret_facts); /* after memory, shapes and cards */
    facts_of_ranks(report, ret_facts);
    facts_of_gains(report, ret_facts);
    return 0;
}
