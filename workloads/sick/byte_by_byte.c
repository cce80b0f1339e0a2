// truth: small_reads
// about: records are read field by field with read(), some bytes at a time
// also: data_loading_bound io_wait
// cure: --whole
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { RECORDS = 2000, FIELDS = 64, FIELD = 16, STEPS = 300, BATCH = 100 };

static char data[FIELDS * FIELD];

static void load(int fd, int record, int whole)
{
    if (whole) {
        if (pread(fd, data, sizeof data, (off_t)record * (off_t)sizeof data) < 0)
            abort();
        return;
    }
    if (lseek(fd, (off_t)record * (off_t)sizeof data, SEEK_SET) < 0)
        abort();
    for (int i = 0; i < FIELDS; i++)
        if (read(fd, data + i * FIELD, FIELD) != FIELD)
            abort();
}

static double train(void)
{
    static double weights[FIELDS * FIELD];
    double sum = 0;
    for (int round = 0; round < 12; round++)
        for (int i = 0; i < FIELDS * FIELD; i++) {
            weights[i] = weights[i] * 0.99 + data[i] * 0.01;
            sum += weights[i];
        }
    return sum;
}

int main(int argc, char **argv)
{
    const int whole = argc > 1 && strcmp(argv[1], "--whole") == 0;
    char path[] = "/tmp/records-XXXXXX";
    const int fd = mkstemp(path);
    double loss = 0;
    if (fd < 0)
        return 1;
    for (int i = 0; i < RECORDS; i++) {
        memset(data, i, sizeof data);
        if (write(fd, data, sizeof data) != (ssize_t)sizeof data)
            return 1;
    }
    for (int step = 0; step < STEPS; step++) {
        sonde_step();
        for (int k = 0; k < BATCH; k++) {
            SONDE_ZONE("records", SONDE_DATA_LOADING) {
                load(fd, (step * 131 + k * 17) % RECORDS, whole);
            }
            SONDE_ZONE("train", SONDE_FORWARD) {
                loss += train();
            }
        }
    }
    (void)close(fd);
    (void)unlink(path);
    printf("%g\n", loss);
    return 0;
}
