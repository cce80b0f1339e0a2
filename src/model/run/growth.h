/* growth.h: what the points of a scaling experiment say. Called by scaling.c. */
#ifndef SONDE_MODEL_RUN_GROWTH_H
#define SONDE_MODEL_RUN_GROWTH_H

#include "model/run/scaling.h"

/* Fills curves and the crossing from the measured points. */
void growth_fit(struct scaling *s);

/* ms of a mixture at x. */
double growth_at(const double mixture[MIXTURE], double x);

#endif
