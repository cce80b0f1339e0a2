// link: none
/* fake_cuda: stands in for libcuda.so.1 where there is no card: events alone.
 *
 * The device does everything at the instant it is asked to: an event has the host's time of
 * its recording, so the time between two of them is known to the program as well. Or the
 * program says itself what the device's clock is: fake_cuda_work(ms).
 */
#include <stdlib.h>
#include <time.h>

struct event {
    double ms;
};

int cuEventCreate(struct event **event, unsigned flags);
int cuEventRecord(struct event *event, void *stream);
int cuEventQuery(struct event *event);
int cuEventElapsedTime(float *ms, struct event *from, struct event *to);
int cuStreamIsCapturing(void *stream, int *capturing);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuCtxGetDevice(int *device);
void fake_cuda_work(double ms);

static double told_ms; /* 0: the host's clock counts */

void fake_cuda_work(double ms)
{
    told_ms += ms;
}

int cuEventCreate(struct event **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    return *event ? 0 : 2;
}

int cuEventRecord(struct event *event, void *stream)
{
    (void)stream;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    event->ms = told_ms > 0 ? told_ms
                            : (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
    return 0;
}

int cuEventQuery(struct event *event)
{
    return event->ms > 0 ? 0 : 600;
}

int cuEventElapsedTime(float *ms, struct event *from, struct event *to)
{
    *ms = (float)(to->ms - from->ms);
    return 0;
}

int cuStreamIsCapturing(void *stream, int *capturing)
{
    (void)stream;
    *capturing = 0;
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    (void)mode;
    return 0;
}

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}
