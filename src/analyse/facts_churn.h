/* facts_churn.h: memory that is taken and given back again and again, told from memory
 * that grows. Private to analyse/. */
#ifndef SONDE_ANALYSE_FACTS_CHURN_H
#define SONDE_ANALYSE_FACTS_CHURN_H

struct report;
struct facts;

struct churn {
    double faults_per_s;  /* page faults that are neither growth nor first touches */
    double made_mb_per_s; /* allocated while it steps; NaN: nobody counted */
    double kept_mb_per_s; /* by which memory grew meanwhile; NaN unknown */
};

/* Of the steady part of the run. After the facts of time. */
struct churn churn_of(const struct report *report, const struct facts *facts);
/* How often what is allocated is more than what stays; at most 1,000. NaN unknown. */
double churn_turnover(const struct churn *churn);
/* Part of what is allocated that is given back: 1 where nobody knows. */
double churn_returned(const struct churn *churn);

#endif
