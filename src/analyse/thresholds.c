/* thresholds.c: see thresholds.h. */
#include "analyse/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyse/rules.h"

const struct threshold_info threshold_infos[] = {
#define THRESHOLD(name, value, reference, unit, text)                                  \
    { #name, unit, text, value, reference, offsetof(struct thresholds, name) },
#include "analyse/threshold_list.h"
#undef THRESHOLD
};
const size_t threshold_count = sizeof threshold_infos / sizeof *threshold_infos;

static double *place_of(struct thresholds *t, const struct threshold_info *info)
{
    return (double *)(void *)((char *)t + info->offset);
}

void thresholds_init(struct thresholds *ret_thresholds)
{
    struct thresholds t = { .reference = false };
    for (size_t i = 0; i < threshold_count; i++)
        *place_of(&t, &threshold_infos[i]) = threshold_infos[i].value;
    *ret_thresholds = t;
}

int thresholds_use_set(struct thresholds *t, const char *set)
{
    if (strcmp(set, "default") == 0)
        return 0;
    if (strcmp(set, "reference") != 0)
        return -EINVAL;
    for (size_t i = 0; i < threshold_count; i++)
        if (!isnan(threshold_infos[i].reference))
            *place_of(t, &threshold_infos[i]) = threshold_infos[i].reference;
    t->reference = true;
    return 0;
}

const struct threshold_info *threshold_by_name(const char *name)
{
    for (size_t i = 0; i < threshold_count; i++)
        if (strcmp(threshold_infos[i].name, name) == 0)
            return &threshold_infos[i];
    return NULL;
}

double threshold_most(const struct threshold_info *info)
{
    return strcmp(info->unit, "share") == 0 ? 1 : INFINITY;
}

int thresholds_set(struct thresholds *t, const char *name, double value)
{
    const struct threshold_info *info = threshold_by_name(name);
    if (!info || !(value >= 0) || value > threshold_most(info))
        return -EINVAL;
    *place_of(t, info) = value;
    return 0;
}

static bool is_rule(const char *id)
{
    for (size_t i = 0; i < rule_total(); i++)
        if (strcmp(rule_at(i)->id, id) == 0)
            return true;
    return false;
}

int thresholds_rule_off(struct thresholds *t, const char *rule)
{
    const size_t len = strlen(rule);
    if (thresholds_is_off(t, rule))
        return 0;
    if (!is_rule(rule) || len >= RULE_ID_LEN || t->off_count == RULES_OFF_MAX)
        return -EINVAL;
    memcpy(t->off[t->off_count++], rule, len + 1);
    return 0;
}

bool thresholds_is_off(const struct thresholds *t, const char *rule)
{
    for (size_t i = 0; i < t->off_count; i++)
        if (strcmp(t->off[i], rule) == 0)
            return true;
    return false;
}
