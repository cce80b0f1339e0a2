/* screen.h: a terminal that shows pages of text, and its keys. Over ncurses; without it
 * (not built in, not a terminal) screen_open() fails and pages go to stdout. */
#ifndef SONDE_CLI_SCREEN_H
#define SONDE_CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

enum screen_key {
    KEY_NOTHING = 0,
    KEY_PAGE_UP = 0x1000,
    KEY_PAGE_DOWN,
    KEY_LINE_UP,
    KEY_LINE_DOWN,
    KEY_WINDOW, /* the window has another size */
};

/* SONDE_E_UNSUPPORTED when there is no terminal to draw on. */
int screen_open(void);
/* Gives the terminal back as it was. Safe to call twice. */
void screen_close(void);
void screen_size(int *ret_width, int *ret_height);
/* Shows lines of text with SGR colours; what does not fit is cut. The last line of the
 * screen is `status`. */
void screen_show(const char *text, const char *status);
/* Waits for a key: its character, or one of enum screen_key. */
int screen_key(uint64_t timeout_ms);

#endif
