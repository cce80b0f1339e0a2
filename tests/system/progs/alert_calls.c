// link: a
/* alert_calls: a program that asks to be told: memory above 1 MiB at once, a hot card
 * from the middle on. Prints a line per call, and asks for a value in it. */
#include <stdio.h>
#include <unistd.h>

#include <sonde/sonde.h>

static void told(const struct sonde_alert *alert, void *arg)
{
    double rss = -1;
    const int rc = sonde_monitor_current("rss", NULL, &rss);
    printf("%s '%s' %s %d %s %d\n", alert->expression, alert->subject, alert->unit,
           alert->active, (const char *)arg, rc == 0 && rss > 0);
}

int main(void)
{
    printf("%d %s\n", sonde_alert_add("cpu>>1", told, "x"), sonde_alert_error());
    if (sonde_alert_add("memory>1MiB", told, "first") < 0 ||
        sonde_monitor_start(20 * 1000 * 1000) < 0)
        return 1;
    (void)usleep(200 * 1000);
    if (sonde_alert_add("gpu_temp>=61C", told, "late") < 0)
        return 1;
    (void)usleep(300 * 1000);
    return sonde_monitor_stop() < 0;
}
