/* thresholds.h: the limits of all rules, in one place.
 *
 * Defaults, then the set that was asked for, then what sonde.yaml says:
 *
 *     rules:
 *       set: reference        # the absolute limits of the reference documents
 *       data_wait: 0.25       # any name of threshold_list.h
 *       off: [gc_pauses]      # rules that do not speak
 */
#ifndef SONDE_ANALYSE_THRESHOLDS_H
#define SONDE_ANALYSE_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>

enum { RULES_OFF_MAX = 64, RULE_ID_LEN = 32 };

struct thresholds {
#define THRESHOLD(name, value, reference, unit, text) double name;
#include "analyse/threshold_list.h"
#undef THRESHOLD
    bool reference;
    char off[RULES_OFF_MAX][RULE_ID_LEN];
    size_t off_count;
};

struct threshold_info {
    const char *name, *unit, *text;
    double value, reference;
    size_t offset; /* in struct thresholds */
};
extern const struct threshold_info threshold_infos[];
extern const size_t threshold_count;

void thresholds_init(struct thresholds *ret_thresholds);
/* "default" or "reference"; −EINVAL for any other. */
int thresholds_use_set(struct thresholds *thresholds, const char *set);
/* NULL: no such name. */
const struct threshold_info *threshold_by_name(const char *name);
/* The most it may be: a share of something is no more than all of it. */
double threshold_most(const struct threshold_info *info);
/* −EINVAL: no such name, or the value is no number it could be. */
int thresholds_set(struct thresholds *thresholds, const char *name, double value);
/* −EINVAL: no such rule. */
int thresholds_rule_off(struct thresholds *thresholds, const char *rule);
bool thresholds_is_off(const struct thresholds *thresholds, const char *rule);

enum { THRESHOLDS_ERROR_LEN = 160 };
/* Reads the key `rules` of a YAML file; other keys are others', but for those that are
 * meant to be `rules` and misspelt. −ENOENT: no such file;
 * SONDE_E_FORMAT: ret_error says what and in which line; −ENOSYS: built without libyaml.
 * Untouched on failure. */
int thresholds_read(struct thresholds *thresholds, const char *path,
                    char ret_error[THRESHOLDS_ERROR_LEN]);

#endif
