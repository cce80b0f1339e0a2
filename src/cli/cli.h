/* cli.h: the verbs of the command `sonde` and what they share.
 *
 * A verb is one function in its own cmd_*.c; main.c holds the table. It gets its
 * own arguments (argv[0] is the verb) and returns the exit status. Only this folder
 * prints or exits: answers go to stdout, everything else to stderr.
 */
#ifndef SONDE_CLI_CLI_H
#define SONDE_CLI_CLI_H

/* Exit statuses of every verb but `run` (DESIGN §14). */
enum {
    CLI_GOOD = 0,
    CLI_NO = 1,           /* the answer is "no" */
    CLI_FAILED = 2,       /* wrong usage, or something went wrong */
    CLI_INCONCLUSIVE = 3, /* measured, but not enough to tell */
};

int cmd_attach(int argc, char **argv);
int cmd_baseline(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_demo(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_flops(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_recover(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_scale(int argc, char **argv);
int cmd_search(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_store(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_trends(int argc, char **argv);

/* One line on stderr, "sonde: " before it and a newline behind. */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Before a verb looks at runs: finishes those whose supervisor has died
 * (launch/adopt.h). Says so on stderr unless quiet; never fails. */
void cli_adopt_orphans(int quiet);

/* A case-insensitive guess at what was meant, NULL when nothing is near. */
const char *cli_nearest(const char *word, const char *const *candidates,
                        unsigned count);

#endif
