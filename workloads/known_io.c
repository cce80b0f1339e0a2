// link: a
// truth: DIR/input.WAY holds SIZE bytes in lines of 1 … 99; each WAY reads it as told in
// truth: the table `ways`, or writes DIR/output.WAY: SIZE bytes, the same ones.
// truth: calls are exact where the way is no stdio; leak: 40 descriptors stay open;
// truth: zone "load" reads SIZE bytes; socketpair and tcp carry SIZE bytes each way
/* known_io: known bytes by every way there is to move them.
 *
 *     known_io DIR            all ways, one after the other
 *     known_io DIR WAY…       these
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { SIZE = 1000003, PIECE = 1000 };
static const char *dir;
static char *content; /* what every file holds */

_Noreturn static void fail(const char *what)
{
    perror(what);
    _exit(9);
}

static const char *path_of(const char *kind, const char *way)
{
    static char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s.%s", dir, kind, way);
    return path;
}

static int in(const char *way)
{
    const int fd = open(path_of("input", way), O_RDONLY);
    return fd < 0 ? fail(way), -1 : fd;
}

static int out(const char *way)
{
    const int fd = open(path_of("output", way), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return fd < 0 ? fail(way), -1 : fd;
}

static FILE *fin(const char *way)
{
    FILE *f = fopen(path_of("input", way), "r");
    return f ? f : (fail(way), NULL);
}

static FILE *fout(const char *way)
{
    FILE *f = fopen(path_of("output", way), "w");
    return f ? f : (fail(way), NULL);
}

static void same(const char *way, size_t bytes)
{
    if (bytes != SIZE) {
        (void)fprintf(stderr, "%s: %zu bytes\n", way, bytes);
        _exit(8);
    }
}

/* ---- Reading by descriptor --------------------------------------------------- */

static void drain_fd(const char *way, int fd)
{
    char buf[4096];
    size_t sum = 0;
    for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
        sum += (size_t)n;
    same(way, sum);
    (void)close(fd);
}

static void way_read(const char *way)
{
    drain_fd(way, in(way));
}

/* From the end to the beginning: no read follows the one before. */
static void way_backwards(const char *way)
{
    char buf[PIECE];
    const int fd = in(way);
    for (int i = SIZE / PIECE; i >= 0; i--)
        if (pread(fd, buf, PIECE, (off_t)i * PIECE) <= 0)
            fail(way);
    (void)close(fd);
}

static void way_seek(const char *way)
{
    char buf[PIECE];
    const int fd = in(way);
    for (int i = SIZE / PIECE; i >= 0; i--)
        if (lseek(fd, (off_t)i * PIECE, SEEK_SET) < 0 || read(fd, buf, PIECE) <= 0)
            fail(way);
    (void)close(fd);
}

static void way_pread(const char *way)
{
    char buf[PIECE];
    const int fd = in(way);
    for (off_t at = 0; at < SIZE; at += PIECE)
        if (pread(fd, buf, PIECE, at) <= 0)
            fail(way);
    (void)close(fd);
}

static void way_readv(const char *way)
{
    char a[300], b[700];
    const struct iovec v[] = { { a, sizeof a }, { b, sizeof b } };
    const int fd = in(way);
    size_t sum = 0;
    for (ssize_t n; (n = readv(fd, v, 2)) > 0;)
        sum += (size_t)n;
    same(way, sum);
    (void)close(fd);
}

static void way_dup(const char *way)
{
    const int fd = in(way);
    const int other = dup(fd);
    (void)close(fd);
    drain_fd(way, other);
}

static void way_zone(const char *way)
{
    SONDE_ZONE("load", SONDE_DATA_LOADING) {
        drain_fd(way, in(way));
    }
}

static void way_mmap(const char *way)
{
    const int fd = in(way);
    const volatile char *p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    unsigned sum = 0;
    if (p == MAP_FAILED)
        fail(way);
    (void)close(fd);
    for (size_t i = 0; i < SIZE / 2; i += 512)
        sum += (unsigned char)p[i];
    if (munmap((void *)p, SIZE) != 0 || sum == 0)
        fail(way);
}

/* ---- Reading by FILE --------------------------------------------------------- */

static void way_fread(const char *way)
{
    char buf[333];
    FILE *f = fin(way);
    size_t sum = 0;
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
        sum += n;
    same(way, sum);
    (void)fclose(f);
}

/* One item larger than the file: its bytes are taken, its number is 0. */
static void way_fread_item(const char *way)
{
    char *buf = malloc(2 * SIZE);
    FILE *f = fin(way);
    if (fread(buf, 2 * SIZE, 1, f) != 0 || memcmp(buf, content, SIZE) != 0)
        fail(way);
    (void)fclose(f);
    free(buf);
}

static void way_fgets(const char *way)
{
    char buf[64]; /* shorter than some lines */
    FILE *f = fin(way);
    size_t sum = 0;
    while (fgets(buf, sizeof buf, f))
        sum += strlen(buf);
    same(way, sum);
    (void)fclose(f);
}

static void way_getc(const char *way)
{
    FILE *f = fin(way);
    size_t sum = 0;
    for (int c; (c = getc(f)) != EOF; sum++)
        if (sum % 1000 == 0 && ungetc(c ^ 1, f) != EOF)
            (void)getc(f); /* another character: goes to a buffer of its own */
    same(way, sum);
    (void)fclose(f);
}

static void way_getc_unlocked(const char *way)
{
    FILE *f = fin(way);
    size_t sum = 0;
    while (getc_unlocked(f) != EOF)
        sum++;
    same(way, sum);
    (void)fclose(f);
}

static void way_getline(const char *way)
{
    char *line = NULL;
    size_t room = 0, sum = 0;
    FILE *f = fin(way);
    for (ssize_t n; (n = getline(&line, &room, f)) > 0;)
        sum += (size_t)n;
    same(way, sum);
    free(line);
    (void)fclose(f);
}

static void way_fscanf(const char *way)
{
    char word[128];
    FILE *f = fin(way);
    size_t words = 0;
    while (fscanf(f, "%127s", word) == 1)
        words++;
    if (words == 0)
        fail(way);
    (void)fclose(f);
}

/* Each seek outside the buffer reads a block at its place. */
static void way_fseek(const char *way)
{
    FILE *f = fin(way);
    for (int i = 99; i >= 0; i--)
        if (fseek(f, (long)i * 10000, SEEK_SET) != 0 || getc(f) != content[i * 10000])
            fail(way);
    (void)fclose(f);
}

/* ---- Writing ------------------------------------------------------------------ */

static void way_write(const char *way)
{
    const int fd = out(way);
    for (size_t at = 0; at < SIZE; at += PIECE) {
        const size_t n = SIZE - at < PIECE ? SIZE - at : PIECE;
        if (write(fd, content + at, n) != (ssize_t)n)
            fail(way);
    }
    if (fsync(fd) != 0)
        fail(way);
    (void)close(fd);
}

static void way_pwrite(const char *way)
{
    const int fd = out(way);
    if (pwrite(fd, content + PIECE, SIZE - PIECE, PIECE) != SIZE - PIECE ||
        pwrite(fd, content, PIECE, 0) != PIECE)
        fail(way);
    (void)close(fd);
}

static void way_writev(const char *way)
{
    const struct iovec v[] = { { content, 3 }, { content + 3, SIZE - 3 } };
    const int fd = out(way);
    if (writev(fd, v, 2) != SIZE)
        fail(way);
    (void)close(fd);
}

static void way_fwrite(const char *way)
{
    FILE *f = fout(way);
    for (size_t at = 0; at < SIZE; at += 333)
        if (fwrite(content + at, SIZE - at < 333 ? SIZE - at : 333, 1, f) != 1)
            fail(way);
    (void)fclose(f);
}

static void put_lines(const char *way, int how)
{
    FILE *f = fout(way);
    char line[128];
    for (const char *p = content; *p;) {
        const size_t n = strcspn(p, "\n") + 1;
        memcpy(line, p, n);
        line[n] = '\0';
        if ((how == 0 ? fputs(line, f)
                      : fprintf(f, "%.3s%s", line, n > 3 ? line + 3 : "")) < 0)
            fail(way);
        p += n;
        if (how == 2)
            (void)fflush(f);
    }
    (void)fclose(f);
}

static void way_fputs(const char *way)
{
    put_lines(way, 0);
}

static void way_fprintf(const char *way)
{
    put_lines(way, 1);
}

static void way_fflush(const char *way)
{
    put_lines(way, 2);
}

static void way_putc(const char *way)
{
    FILE *f = fout(way);
    for (const char *p = content; *p; p++)
        (void)((p - content) % 3 ? putc_unlocked(*p, f) : putc(*p, f));
    (void)fclose(f);
}

/* Line-buffered: written at each newline. */
static void way_lines(const char *way)
{
    FILE *f = fout(way);
    (void)setvbuf(f, NULL, _IOLBF, 0);
    if (fwrite(content, 1, SIZE, f) != SIZE)
        fail(way);
    (void)fclose(f);
}

/* Left to exit(). */
static void way_unflushed(const char *way)
{
    FILE *f = fout(way);
    if (fwrite(content, 1, SIZE, f) != SIZE)
        fail(way);
}

/* ---- Between two -------------------------------------------------------------- */

static void way_sendfile(const char *way)
{
    const int from = in(way), to = out(way);
    for (size_t sum = 0; sum < SIZE;) {
        const ssize_t n = sendfile(to, from, NULL, 300000);
        if (n <= 0)
            fail(way);
        sum += (size_t)n;
    }
    (void)close(from);
    (void)close(to);
}

static void way_copy(const char *way)
{
    const int from = in(way), to = out(way);
    for (size_t sum = 0; sum < SIZE;) {
        const ssize_t n = copy_file_range(from, NULL, to, NULL, SIZE, 0);
        if (n <= 0)
            fail(way);
        sum += (size_t)n;
    }
    (void)close(from);
    (void)close(to);
}

static void *send_all(void *fd)
{
    for (size_t at = 0; at < SIZE; at += PIECE) {
        const size_t n = SIZE - at < PIECE ? SIZE - at : PIECE;
        if (send(*(int *)fd, content + at, n, 0) != (ssize_t)n)
            fail("send");
    }
    (void)shutdown(*(int *)fd, SHUT_WR);
    return NULL;
}

static void exchange(const char *way, int from, int to)
{
    char buf[4096];
    size_t sum = 0;
    pthread_t sender;
    if (pthread_create(&sender, NULL, send_all, &from) != 0)
        fail(way);
    for (ssize_t n; (n = recv(to, buf, sizeof buf, 0)) > 0;)
        sum += (size_t)n;
    (void)pthread_join(sender, NULL);
    same(way, sum);
    (void)close(from);
    (void)close(to);
}

static void way_socketpair(const char *way)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        fail(way);
    exchange(way, ends[0], ends[1]);
}

static void way_tcp(const char *way)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    socklen_t len = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int door = socket(AF_INET, SOCK_STREAM, 0);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(door, (struct sockaddr *)&a, len) != 0 || listen(door, 1) != 0 ||
        getsockname(door, (struct sockaddr *)&a, &len) != 0 ||
        connect(client, (struct sockaddr *)&a, len) != 0)
        fail(way);
    const int server = accept(door, NULL, NULL);
    exchange(way, client, server);
    (void)close(door);
    (void)printf("port %u\n", ntohs(a.sin_port));
}

static void *write_pipe(void *fd)
{
    if (write(*(int *)fd, content, SIZE) != SIZE)
        fail("pipe");
    (void)close(*(int *)fd);
    return NULL;
}

static void way_pipe(const char *way)
{
    int ends[2];
    pthread_t writer;
    if (pipe(ends) != 0 || pthread_create(&writer, NULL, write_pipe, &ends[1]) != 0)
        fail(way);
    drain_fd(way, ends[0]);
    (void)pthread_join(writer, NULL);
}

/* ---- Processes, threads, descriptors ----------------------------------------------- */

static void way_leak(const char *way)
{
    for (int i = 0; i < 40; i++)
        (void)in(way);
}

static void way_fork(const char *way)
{
    const int fd = in(way);
    const pid_t child = fork();
    if (child == 0) {
        drain_fd(way, fd);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        fail(way);
    (void)close(fd);
}

static int shared_fd;
static void *read_shared(void *unused)
{
    char buf[PIECE];
    for (int round = 0; round < 4; round++)
        for (off_t at = 0; at < SIZE; at += PIECE)
            if (pread(shared_fd, buf, PIECE, at) <= 0)
                fail("threads");
    return unused;
}

static void way_threads(const char *way)
{
    pthread_t thread[4];
    shared_fd = in(way);
    for (int i = 0; i < 4; i++)
        if (pthread_create(&thread[i], NULL, read_shared, NULL) != 0)
            fail(way);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(thread[i], NULL);
    (void)close(shared_fd);
}

/* One FILE, many threads: what a line ends up in is not known, the bytes are. */
static FILE *shared_file;
static void *print_shared(void *unused)
{
    for (int i = 0; i < 5000; i++)
        (void)fprintf(shared_file, "%09d\n", i);
    return unused;
}

static void way_fprintf_threads(const char *way)
{
    pthread_t thread[4];
    shared_file = fout(way);
    for (int i = 0; i < 4; i++)
        if (pthread_create(&thread[i], NULL, print_shared, NULL) != 0)
            fail(way);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(thread[i], NULL);
    (void)fclose(shared_file);
}

static const struct {
    const char *name;
    void (*run)(const char *way);
} ways[] = {
    { "read", way_read },
    { "backwards", way_backwards },
    { "seek", way_seek },
    { "pread", way_pread },
    { "readv", way_readv },
    { "dup", way_dup },
    { "zone", way_zone },
    { "mmap", way_mmap },
    { "fread", way_fread },
    { "fread_item", way_fread_item },
    { "fgets", way_fgets },
    { "getc", way_getc },
    { "getc_unlocked", way_getc_unlocked },
    { "getline", way_getline },
    { "fscanf", way_fscanf },
    { "fseek", way_fseek },
    { "write", way_write },
    { "pwrite", way_pwrite },
    { "writev", way_writev },
    { "fwrite", way_fwrite },
    { "fputs", way_fputs },
    { "fprintf", way_fprintf },
    { "fflush", way_fflush },
    { "putc", way_putc },
    { "lines", way_lines },
    { "unflushed", way_unflushed },
    { "sendfile", way_sendfile },
    { "copy", way_copy },
    { "socketpair", way_socketpair },
    { "tcp", way_tcp },
    { "pipe", way_pipe },
    { "leak", way_leak },
    { "fork", way_fork },
    { "threads", way_threads },
    { "fprintf_threads", way_fprintf_threads },
};

/* Lines of 1 … 99 letters and a newline, SIZE bytes in all. */
static void make_content(void)
{
    content = malloc(SIZE + 1);
    for (size_t at = 0, line = 1; at < SIZE; line = line % 99 + 1) {
        for (size_t i = 0; i < line && at + 1 < SIZE; i++)
            content[at++] = (char)('a' + (line + i) % 26);
        content[at++] = '\n';
    }
    content[SIZE] = '\0';
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    dir = argv[1];
    make_content();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bool wanted = argc == 2;
        for (int a = 2; a < argc; a++)
            wanted |= strcmp(argv[a], ways[i].name) == 0;
        if (wanted)
            ways[i].run(ways[i].name);
    }
    return 0;
}
