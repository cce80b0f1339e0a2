/* session.c: records by itself, without `sonde run`.
 *
 *     ./session && sonde report session-run
 */
#include <stdio.h>

#include <sonde/sonde.h>

static void work(int times)
{
    for (int i = 0; i < times; i++)
        SONDE_ZONE("work", SONDE_FORWARD) {
            sonde_value("size", i);
        }
}

int main(void)
{
    struct sonde_options options;
    sonde_options_lightweight(&options);
    options.output = "session-run";
    options.name = "a session";
    if (sonde_session_start(&options) < 0) {
        fprintf(stderr, "not recording: %s\n", sonde_session_error());
        /* … and go on: every call below does nothing then. */
    }
    work(1000);
    sonde_pause();
    work(500); /* not recorded */
    sonde_resume();
    work(1000);
    printf("recorded in %s, %llu events lost\n", sonde_session_directory(),
           (unsigned long long)sonde_lost());
    return sonde_session_stop() < 0;
}
