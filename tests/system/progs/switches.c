// link: a
/* switches: recording switched off and on from inside.
 *
 *     switches pause|site|across|state
 *
 * pause   10 zones, sonde_pause(), 20 zones, sonde_resume(), 30 zones
 * site    zones "on" and "off" by turns; "off" is switched off for the middle 20 of 60
 * across  a zone that begins while recording and ends while paused, and the reverse
 * state   prints sonde_recording() and sonde_session_active() at once, paused, resumed
 */
#include <stdio.h>
#include <string.h>

#include <sonde/sonde.h>

static void zones(int count)
{
    for (int i = 0; i < count; i++)
        SONDE_ZONE("zone", SONDE_FORWARD) {
            SONDE_ZONE("inner", SONDE_NO_PHASE) {}
        }
}

static void pause_and_resume(void)
{
    zones(10);
    sonde_pause();
    zones(20);
    sonde_resume();
    zones(30);
}

static void one_site(void)
{
    struct sonde_site *on = sonde_site_named("on", SONDE_FORWARD, NULL, NULL, NULL);
    struct sonde_site *off = sonde_site_named("off", SONDE_FORWARD, NULL, NULL, NULL);
    for (int i = 0; i < 60; i++) {
        sonde_site_enable(off, i < 20 || i >= 40);
        SONDE_ZONE_OF(on)
        {
            SONDE_ZONE_OF(off)
            {
                SONDE_ZONE("inside", SONDE_NO_PHASE) {}
            }
        }
    }
}

static void across(void)
{
    SONDE_ZONE("begun recorded", SONDE_FORWARD) {
        sonde_pause();
    }
    SONDE_ZONE("begun paused", SONDE_FORWARD) {
        sonde_resume();
    }
    zones(5);
}

static void state(void)
{
    zones(1);
    (void)printf("%d %d\n", sonde_recording(), sonde_session_active());
    sonde_pause();
    (void)printf("%d %d\n", sonde_recording(), sonde_session_active());
    sonde_resume();
    (void)printf("%d %d\n", sonde_recording(), sonde_session_active());
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = { { "pause", pause_and_resume },
                  { "site", one_site },
                  { "across", across },
                  { "state", state } };
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            return 0;
        }
    }
    return 2;
}
