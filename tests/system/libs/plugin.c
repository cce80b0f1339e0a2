// link: so
/* plugin: an instrumented library that comes and goes (dl_reload). */
#include <sonde/sonde.h>

__attribute__((visibility("default"))) void plugin_work(int zones);

void plugin_work(int zones)
{
    for (int i = 0; i < zones; i++)
        SONDE_ZONE_EX("plugin", SONDE_PREPROCESSING, "plugins", NULL, "kind=dl") {
            SONDE_ZONE("plugin inner", SONDE_NO_PHASE) {}
        }
}
