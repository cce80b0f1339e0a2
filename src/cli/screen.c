/* screen.c: pages on a terminal, by ncurses. */
#include "cli/screen.h"

#include <stddef.h>

#include "base/error.h"

#ifdef SONDE_HAVE_NCURSES

#include <curses.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static SCREEN *terminal;

int screen_open(void)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return SONDE_E_UNSUPPORTED;
    const char *type = getenv("TERM");
    (void)setlocale(LC_ALL, "");
    terminal = newterm(type && type[0] ? type : "ansi", stdout, stdin);
    if (!terminal)
        return SONDE_E_UNSUPPORTED;
    (void)set_term(terminal);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    if (has_colors()) {
        (void)start_color();
        (void)use_default_colors();
        (void)init_pair(1, COLOR_RED, -1);
        (void)init_pair(2, COLOR_GREEN, -1);
        (void)init_pair(3, COLOR_CYAN, -1);
    }
    return 0;
}

void screen_close(void)
{
    if (!terminal)
        return;
    (void)endwin();
    delscreen(terminal);
    terminal = NULL;
}

void screen_size(int *ret_width, int *ret_height)
{
    getmaxyx(stdscr, *ret_height, *ret_width);
}

/* The few colours present/report uses: "1", "2", "1;31", "32", "36", "0". */
static void set_color(const char *code, size_t len)
{
    static const struct {
        const char *code;
        attr_t attributes;
        short pair;
    } colors[] = { { "1", A_BOLD, 0 },
                   { "2", A_DIM, 0 },
                   { "1;31", A_BOLD, 1 },
                   { "32", A_NORMAL, 2 },
                   { "36", A_NORMAL, 3 } };
    (void)attr_set(A_NORMAL, 0, NULL);
    for (size_t i = 0; i < sizeof colors / sizeof *colors; i++)
        if (strlen(colors[i].code) == len && strncmp(code, colors[i].code, len) == 0)
            (void)attr_set(colors[i].attributes, colors[i].pair, NULL);
}

static void show_line(const char *line, size_t len)
{
    for (size_t at = 0; at < len;) {
        const char *escape = memchr(line + at, '\033', len - at);
        const size_t end = escape ? (size_t)(escape - line) : len;
        if (end > at)
            (void)addnstr(line + at, (int)(end - at));
        if (!escape)
            break;
        const char *m = memchr(escape, 'm', len - end);
        if (!m || m - escape < 2)
            break;
        set_color(escape + 2, (size_t)(m - escape) - 2);
        at = (size_t)(m - line) + 1;
    }
}

void screen_show(const char *text, const char *status)
{
    int width, height, row = 0;
    screen_size(&width, &height);
    (void)erase();
    (void)attr_set(A_NORMAL, 0, NULL);
    while (*text && row < height - 1) {
        const size_t len = strcspn(text, "\n");
        (void)move(row++, 0);
        show_line(text, len);
        text += len + (text[len] == '\n');
    }
    (void)attr_set(A_REVERSE, 0, NULL);
    (void)move(height - 1, 0);
    (void)addnstr(status, width - 1);
    (void)attr_set(A_NORMAL, 0, NULL);
    (void)refresh();
}

int screen_key(uint64_t timeout_ms)
{
    timeout(timeout_ms > 3600000 ? 3600000 : (int)timeout_ms);
    const int key = getch();
    switch (key) {
    case ERR:
        return KEY_NOTHING;
    case KEY_RESIZE:
        return KEY_WINDOW;
    case KEY_UP:
        return KEY_LINE_UP;
    case KEY_DOWN:
        return KEY_LINE_DOWN;
    case KEY_PPAGE:
        return KEY_PAGE_UP;
    case KEY_NPAGE:
        return KEY_PAGE_DOWN;
    default:
        return key;
    }
}

#else

int screen_open(void)
{
    return SONDE_E_UNSUPPORTED;
}

void screen_close(void) {}

void screen_size(int *ret_width, int *ret_height)
{
    *ret_width = 80;
    *ret_height = 24;
}

void screen_show(const char *text, const char *status)
{
    (void)text;
    (void)status;
}

int screen_key(uint64_t timeout_ms)
{
    (void)timeout_ms;
    return KEY_NOTHING;
}

#endif
