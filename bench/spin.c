// link: none
/* spin.c: a fixed amount of work: `spin N` does N thousand rounds. For bench/gates.py. */
#include <stdint.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    volatile uint64_t state = 88172645463325252u;
    for (long i = 0; i < rounds * 1000; i++) {
        uint64_t x = state;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state = x;
    }
    return state == 0;
}
