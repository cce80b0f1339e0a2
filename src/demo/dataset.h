/* dataset.h: a file of small grey pictures of digits, each with its label.
 *
 * The pictures are drawn, not downloaded: a 5 × 7 font, turned, scaled, shifted,
 * unevenly lit and noisy. The same seed gives the same file.
 *
 * File: struct dataset_head, then `count` records of struct scan.
 */
#ifndef SONDE_DEMO_DATASET_H
#define SONDE_DEMO_DATASET_H

#include <stdint.h>

enum { SCAN_SIDE = 64, SCAN_PIXELS = SCAN_SIDE * SCAN_SIDE, CLASSES = 10 };

struct scan {
    uint32_t label;
    uint8_t pixels[SCAN_PIXELS];
};

struct dataset {
    int fd;
    unsigned count;
};

/* Draws `count` scans and writes them to a new file. 0 or −errno. */
int dataset_generate(const char *path, uint64_t seed, unsigned count);
/* Opens a file for reading; −EINVAL when it is no data set or is cut short. */
int dataset_open(const char *path, struct dataset *ret_dataset);
void dataset_close(struct dataset *dataset);
/* Reads one scan with pread: any thread, any order. −EINVAL for a bad index. */
int dataset_read(const struct dataset *dataset, unsigned index, struct scan *ret_scan);

#endif
