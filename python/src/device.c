/* device.c: how long the GPU was at each phase, without ever waiting for it.
 *
 * Where a phase begins or ends on the main thread an event is recorded on the current
 * stream: a mark that the device passes when it gets there. Some time later, when it has
 * long been passed, the time between two marks is asked for and counted for the phase that
 * was between them. Nothing here synchronises; a mark that has not been passed is looked
 * at again at a later boundary. In a long run only some calls are marked and stand for others
 * as well (turns.c); their time counts so often.
 *
 * The driver's interface is used, from the library that torch has loaded; its names do not
 * change with the toolkit. While a graph is being captured nothing is recorded, and
 * nothing that could spoil a capture on another thread is called.
 *
 * Times go into the trace as counters "device_s:PHASE" (seconds since the last one), in
 * portions: a kill loses the last one. "device_calls" and "device_timed" say how many
 * outermost calls there were, and how many of them were marked.
 */
#include "torch.h"

#include <dlfcn.h>
#include <pthread.h>

#include <sonde/tables.h>

enum { RING = 2048, BATCH = 32, DEPTH = 32 };

typedef void *event_t;
typedef void *stream_t;
enum { CU_OK = 0, CU_RELAXED = 2 };
static struct {
    int (*event_create)(event_t *, unsigned);
    int (*event_record)(event_t, stream_t);
    int (*event_query)(event_t);
    int (*event_elapsed)(float *, event_t, event_t);
    int (*is_capturing)(stream_t, int *);
    int (*exchange_mode)(int *);
    int (*current_device)(int *);
} cu;

static struct mark {
    event_t event;
    int phase;       /* of the time from here to the next mark; 0: none, or not known */
    unsigned weight; /* calls that this one stands for */
} ring[RING];
static uint64_t head, tail; /* marks recorded, looked at */
static event_t spare[RING]; /* events are dear to make: used again and again */
static unsigned spare_count;
static int stack[DEPTH];
static unsigned depth;
static unsigned weight; /* of the outermost call we are in; 0: it is not marked */
static int device = -1; /* whose events these are */
static double sums_s[SONDE_PHASE_COUNT];
static PyObject *raw_stream; /* torch's function: device -> address of its stream */
static PyObject *device_number;
static pthread_t main_thread;

int device_on;

/* ---- Looking ---------------------------------------------------------------------- */

static void emit_calls(void)
{
    uint64_t calls, timed;
    turns_take(&calls, &timed);
    if (calls)
        sonde_counter("device_calls", (double)calls);
    if (timed)
        sonde_counter("device_timed", (double)timed);
}

static void emit(void)
{
    char name[48];
    emit_calls();
    for (int p = 1; p < SONDE_PHASE_COUNT; p++)
        if (sums_s[p] > 0) {
            (void)PyOS_snprintf(name, sizeof name, "device_s:%s", sonde_phase_name(p));
            sonde_counter(name, sums_s[p]);
            sums_s[p] = 0;
        }
}

/* The oldest mark is done with; what is between it and the next is counted. */
static void take_one(void)
{
    float ms = 0;
    const struct mark *a = &ring[tail % RING], *b = &ring[(tail + 1) % RING];
    if (a->phase && cu.event_elapsed(&ms, a->event, b->event) == CU_OK && ms >= 0)
        sums_s[a->phase] += ms / 1e3 * a->weight;
    spare[spare_count++] = a->event;
    tail++;
}

/* When the device has passed the last of a batch of marks it has passed them all, or
 * those of another stream give no time. */
static void look(unsigned batch)
{
    if (head - tail <= batch ||
        cu.event_query(ring[(tail + batch) % RING].event) != CU_OK)
        return;
    for (unsigned i = 0; i < batch; i++)
        take_one();
    emit();
}

/* ---- Marking ---------------------------------------------------------------------- */

/* The stream that torch uses now on our device. */
static bool current_stream(stream_t *ret_stream)
{
    int now = -1, capturing = 0;
    if (cu.current_device(&now) != CU_OK || (device >= 0 && now != device))
        return false;
    device = now;
    if (!device_number)
        device_number = PyLong_FromLong(now);
    PyObject *number = PyObject_CallFunctionObjArgs(raw_stream, device_number, NULL);
    void *stream = number ? PyLong_AsVoidPtr(number) : NULL;
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    *ret_stream = stream;
    return cu.is_capturing(stream, &capturing) == CU_OK && capturing == 0;
}

static bool place_mark(int phase)
{
    stream_t stream;
    struct mark *m = &ring[head % RING];
    if (head - tail >= RING - 1 || !current_stream(&stream))
        return false;
    event_t event = NULL;
    if (spare_count > 0)
        event = spare[--spare_count];
    else if (cu.event_create(&event, 0) != CU_OK)
        return false;
    if (cu.event_record(event, stream) != CU_OK) {
        spare[spare_count++] = event;
        return false;
    }
    m->event = event;
    m->phase = phase;
    m->weight = weight;
    head++;
    return true;
}

static void boundary(int phase)
{
    PyObject *type, *value, *traceback;
    int mode = CU_RELAXED;
    const uint64_t began = sonde_ticks();
    PyErr_Fetch(&type, &value, &traceback);
    (void)cu.exchange_mode(&mode);
    look(BATCH); /* first: it makes room */
    if (!place_mark(phase) &&
        head > tail) /* what comes next is unknown until there is a mark again */
        ring[(head - 1) % RING].phase = 0;
    (void)cu.exchange_mode(&mode);
    PyErr_Restore(type, value, traceback);
    turns_cost(sonde_ticks() - began);
}

void device_enter(const struct sonde_site *site)
{
    if (!pthread_equal(main_thread, pthread_self()))
        return;
    if (depth == 0)
        weight = turns_next(site);
    if (depth < DEPTH)
        stack[depth] = site->phase;
    depth++;
    if (weight)
        boundary(site->phase);
}

void device_leave(void)
{
    if (depth == 0 || !pthread_equal(main_thread, pthread_self()))
        return;
    depth--;
    if (weight)
        boundary(depth > 0 && depth <= DEPTH ? stack[depth - 1] : 0);
}

/* ---- From Python ------------------------------------------------------------------ */

static bool find_driver(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const struct {
        void **place;
        const char *name;
    } names[] = {
        { (void **)&cu.event_create, "cuEventCreate" },
        { (void **)&cu.event_record, "cuEventRecord" },
        { (void **)&cu.event_query, "cuEventQuery" },
        { (void **)&cu.event_elapsed, "cuEventElapsedTime" },
        { (void **)&cu.is_capturing, "cuStreamIsCapturing" },
        { (void **)&cu.exchange_mode, "cuThreadExchangeStreamCaptureMode" },
        { (void **)&cu.current_device, "cuCtxGetDevice" },
    };
    for (size_t i = 0; lib && i < sizeof names / sizeof *names; i++)
        if (!(*names[i].place = dlsym(lib, names[i].name)))
            return false;
    return lib != NULL;
}

/* device_start(raw_stream): torch has initialised CUDA; the calling thread is the one
 * whose phases are meant. Returns whether device times are measured from now on. */
PyObject *py_device_start(PyObject *module, PyObject *function)
{
    (void)module;
    if (!find_driver())
        return new_ref(Py_False);
    PyObject *old = raw_stream;
    raw_stream = new_ref(function);
    Py_XDECREF(old);
    main_thread = pthread_self();
    turns_reset();
    device_on = 1;
    return new_ref(Py_True);
}

/* device_flush(): what has been passed by now goes into the trace; at the end. */
PyObject *py_device_flush(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (device_on) {
        while (head - tail > BATCH &&
               cu.event_query(ring[(tail + BATCH) % RING].event) == CU_OK)
            look(BATCH);
        while (head - tail > 1 &&
               cu.event_query(ring[(tail + 1) % RING].event) == CU_OK)
            take_one();
        emit();
    }
    return PyLong_FromUnsignedLongLong(head - tail);
}

/* device_stop(): in a forked child, where CUDA cannot be used. */
PyObject *py_device_stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    device_on = 0;
    depth = 0;
    return new_none();
}
