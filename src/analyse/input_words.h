/* input_words.h: words that rules about input share. Private to analyse/. */
#ifndef SONDE_ANALYSE_INPUT_WORDS_H
#define SONDE_ANALYSE_INPUT_WORDS_H

#include "analyse/rules.h"

/* Share of step time that goes into input; when nobody recorded steps, all of it. */
double input_share(const struct rule_case *c);
/* Batches are there when they are asked for, or cost nothing. */
bool input_keeps_up(const struct rule_case *c);
/* The step waits for its batch; unknown counts as yes. */
bool input_waits(const struct rule_case *c);
/* Share of a step that its batch costs: by waiting, or by taking the cores. */
double input_burden(const struct rule_case *c);
/* Nothing is to be had from cheaper batches. */
bool input_is_hidden(const struct rule_case *c);
/* The what-if's answer where the loader was recorded: three facts from `mid` on. */
void draft_gain_of_model(const struct rule_case *c, struct draft *d, enum fact mid);
/* What goes with the last worker, when none is best: torch refuses both without. */
void put_without_workers(const struct rule_case *c, struct draft *d);

#endif
