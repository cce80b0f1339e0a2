/* phases.h: which phase a zone inside another counts for. For who folds and who reads. */
#ifndef SONDE_TRACE_PHASES_H
#define SONDE_TRACE_PHASES_H

#include <stdbool.h>

#include <sonde/sonde.h>

/* What an evaluation fetches is the evaluation's, whatever made it: validation does not
 * make the training wait for data. */
static inline bool phase_is_input(unsigned phase)
{
    return phase == SONDE_DATA_LOADING || phase == SONDE_PREPROCESSING ||
           phase == SONDE_AUGMENTATION || phase == SONDE_COLLATE ||
           phase == SONDE_TRANSFER;
}

static inline unsigned phase_below(unsigned own, unsigned above)
{
    if (!own || (above == SONDE_EVALUATION && phase_is_input(own)))
        return above;
    return own;
}

#endif
