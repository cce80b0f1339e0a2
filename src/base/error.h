/* error.h: the numbers that functions return when they fail.
 *
 * Every function of Sonde that can fail returns 0 (or a useful non-negative
 * number) on success and a negative number on failure: -errno when the system
 * said no, one of SONDE_ERRORS otherwise. Ours start at -4096, below every
 * errno, so that the two never meet.
 *
 * The numbers are not stored anywhere and may be renumbered at will.
 */
#ifndef SONDE_BASE_ERROR_H
#define SONDE_BASE_ERROR_H

#define SONDE_ERRORS(X)                                                                \
    X(FORMAT, -4096, "the file is damaged or is not what it should be")                \
    X(VERSION, -4097, "the file was written by an unsupported version")                \
    X(LIMIT, -4098, "a limit was reached")                                             \
    X(NOTFOUND, -4099, "no such thing")                                                \
    X(AMBIGUOUS, -4100, "more than one thing matches")                                 \
    X(BUSY, -4101, "somebody else is using it")                                        \
    X(STATE, -4102, "not possible in the present state")                               \
    X(USAGE, -4103, "wrong usage")                                                     \
    X(UNSUPPORTED, -4104, "not supported on this machine or in this build")            \
    X(TRUNCATED, -4105, "the data end too early")

enum {
#define SONDE_ERROR_ENUM(name, value, text) SONDE_E_##name = (value),
    SONDE_ERRORS(SONDE_ERROR_ENUM)
#undef SONDE_ERROR_ENUM
};

/* A short lower-case text for any result, without a final full stop.
 * Never NULL. The text stays valid until the same thread's next call. */
const char *error_text(int rc);

#endif
