/* pinning.c: batches copied to page-locked memory, here or on the thread for it.
 * See fetches.h. */
#include "fetches.h"

enum { MAX_PINNERS = 64 };

/* Threads that pin for a loader. Borrowed: a Fetches that goes takes its place back. */
static struct {
    unsigned long thread;
    struct fetches *fetches;
} pinners[MAX_PINNERS];

static __thread unsigned pin_depth __attribute__((tls_model("initial-exec")));

static struct fetches *pinned_for(void)
{
    if (fetches_current)
        return fetches_current;
    const unsigned long me = PyThread_get_thread_ident();
    for (unsigned i = 0; i < MAX_PINNERS; i++)
        if (pinners[i].fetches && pinners[i].thread == me)
            return pinners[i].fetches;
    return NULL;
}

static struct sonde_site *pin_site(void)
{
    static struct sonde_site *site;
    if (!site)
        site = layer_site("pin_memory", SONDE_TRANSFER, "loader");
    return site;
}

static bool pinning_before(struct hook *h, struct hook_call *call)
{
    (void)h;
    struct fetches *f = pin_depth || !sonde_on_() ? NULL : pinned_for();
    if (!f || !fetches_live(f))
        return false; /* it calls itself for what is in a batch */
    pin_depth = 1;
    call->owner = new_ref((PyObject *)f);
    sonde_begin_on_(pin_site());
    call->start = sonde_ticks();
    return true;
}

static void pinning_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h, (void)result;
    struct fetches *f = (struct fetches *)call->owner;
    const uint64_t took = sonde_ticks() - call->start;
    end_zone(pin_site());
    pin_depth = 0;
    if (fetches_live(f))
        fetches_add(f, LOADER_PINNING, took);
}

const struct hook_kind pinning_kind = { "pinning", pinning_before, pinning_after };

/* ---- Threads ---------------------------------------------------------------------------- */

int pinning_thread(struct fetches *f, PyObject *thread)
{
    const unsigned long ident = PyLong_AsUnsignedLong(thread);
    if (PyErr_Occurred())
        return -1;
    unsigned place = 0;
    while (place < MAX_PINNERS - 1 && pinners[place].fetches &&
           pinners[place].thread != ident)
        place++;
    pinners[place].fetches = f;
    pinners[place].thread = ident;
    return 0;
}

void pinning_forget(const struct fetches *f)
{
    for (unsigned i = 0; i < MAX_PINNERS; i++)
        if (pinners[i].fetches == f)
            pinners[i].fetches = NULL;
}
