/* io_net.c: sockets: send and recv families, connect, accept.
 *
 * A connected socket is called by where it leads, "tcp 10.0.0.7:443" or "unix /run/x";
 * an accepted one by the door it came in through, "tcp from port 8080": the numbers of
 * clients' ports say nothing and are without end. The kernel's rchar and wchar know
 * nothing of these calls ("uncounted").
 */
#include "capture/interpose/io.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags,
                       struct sockaddr *from, socklen_t *len);

/* ---- Messages ------------------------------------------------------------------------------ */

static void end_message(struct io_call *c, enum io_direction d, ssize_t moved,
                        bool peek)
{
    if (peek && moved >= 0)
        return; /* the bytes stay and will be counted when they are taken */
    if (moved > 0)
        io_add(&c->row->side[d].uncounted, (uint64_t)moved, c->alone);
    io_end(c, d, IO_WAY_MESSAGE, moved, IO_NO_PLACE);
}

#define MESSAGE(name, direction, flags, declaration, arguments)                        \
    REAL_OF(name);                                                                     \
    EXPORTED ssize_t name declaration                                                  \
    {                                                                                  \
        struct io_call c;                                                              \
        if (!io_begin(&c, fd))                                                         \
            return REAL(name) arguments;                                               \
        const ssize_t moved = REAL(name) arguments;                                    \
        end_message(&c, direction, moved, (flags)&MSG_PEEK);                           \
        return moved;                                                                  \
    }

MESSAGE(send, IO_WRITE, 0, (int fd, const void *buf, size_t n, int flags),
        (fd, buf, n, flags))
MESSAGE(sendto, IO_WRITE, 0,
        (int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
         socklen_t len),
        (fd, buf, n, flags, to, len))
MESSAGE(sendmsg, IO_WRITE, 0, (int fd, const struct msghdr *m, int flags),
        (fd, m, flags))
MESSAGE(recv, IO_READ, flags, (int fd, void *buf, size_t n, int flags),
        (fd, buf, n, flags))
MESSAGE(recvfrom, IO_READ, flags,
        (int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *len),
        (fd, buf, n, flags, from, len))
MESSAGE(recvmsg, IO_READ, flags, (int fd, struct msghdr *m, int flags), (fd, m, flags))
MESSAGE(__recv_chk, IO_READ, flags,
        (int fd, void *buf, size_t n, size_t room, int flags),
        (fd, buf, n, room, flags))
MESSAGE(__recvfrom_chk, IO_READ, flags,
        (int fd, void *buf, size_t n, size_t room, int flags, struct sockaddr *from,
         socklen_t *len),
        (fd, buf, n, room, flags, from, len))

/* Several messages in one call: one call, their bytes. */
static int64_t sum_of(const struct mmsghdr *messages, int count)
{
    int64_t sum = count < 0 ? -1 : 0;
    for (int i = 0; i < count; i++)
        sum += messages[i].msg_len;
    return sum;
}

REAL_OF(sendmmsg);
EXPORTED int sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags)
{
    struct io_call c;
    if (!io_begin(&c, fd))
        return REAL(sendmmsg)(fd, messages, n, flags);
    const int sent = REAL(sendmmsg)(fd, messages, n, flags);
    end_message(&c, IO_WRITE, sum_of(messages, sent), false);
    return sent;
}

REAL_OF(recvmmsg);
EXPORTED int recvmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags,
                      struct timespec *timeout)
{
    struct io_call c;
    if (!io_begin(&c, fd))
        return REAL(recvmmsg)(fd, messages, n, flags, timeout);
    const int got = REAL(recvmmsg)(fd, messages, n, flags, timeout);
    end_message(&c, IO_READ, sum_of(messages, got), flags & MSG_PEEK);
    return got;
}

/* ---- Names ---------------------------------------------------------------------------------- */

/* The type of a socket; errno is the callers' to save. */
static const char *protocol(int fd)
{
    int type = 0;
    socklen_t len = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0)
        return "socket";
    return type == SOCK_STREAM ? "tcp" : type == SOCK_DGRAM ? "udp" : "socket";
}

/* By hand: torch's loaders connect for every tensor they hand over, and printf takes
 * longer than all else we do about it. An abstract one begins with a zero. */
static void name_unix(const struct sockaddr_un *un, size_t len, char *ret_name,
                      size_t room)
{
    static const char kind[] = "unix ";
    size_t at = sizeof kind - 1, from = 0;
    memcpy(ret_name, kind, at);
    if (!un->sun_path[0]) {
        ret_name[at++] = '@';
        from = 1;
    }
    const size_t n = strnlen(un->sun_path + from, len - from);
    const size_t fits = n < room - at - 1 ? n : room - at - 1;
    memcpy(ret_name + at, un->sun_path + from, fits);
    ret_name[at + fits] = '\0';
}

static bool name_address(int fd, const struct sockaddr_storage *a, socklen_t len,
                         char *ret_name, size_t room)
{
    char text[INET6_ADDRSTRLEN];
    const struct sockaddr_in *in4 = (const void *)a;
    const struct sockaddr_in6 *in6 = (const void *)a;
    const struct sockaddr_un *un = (const void *)a;
    if (a->ss_family == AF_INET && len >= sizeof *in4 &&
        inet_ntop(AF_INET, &in4->sin_addr, text, sizeof text))
        (void)snprintf(ret_name, room, "%s %s:%u", protocol(fd), text,
                       ntohs(in4->sin_port));
    else if (a->ss_family == AF_INET6 && len >= sizeof *in6 &&
             inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text))
        (void)snprintf(ret_name, room, "%s [%s]:%u", protocol(fd), text,
                       ntohs(in6->sin6_port));
    else if (a->ss_family == AF_UNIX && len > offsetof(struct sockaddr_un, sun_path))
        name_unix(un, len - offsetof(struct sockaddr_un, sun_path), ret_name, room);
    else
        return false;
    return true;
}

/* By the port it listens on. */
static void name_accepted(int fd)
{
    struct sockaddr_storage a = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof a;
    char name[160];
    if (getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        return;
    const uint16_t port = a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port
                          : a.ss_family == AF_INET6
                              ? ((struct sockaddr_in6 *)&a)->sin6_port
                              : 0;
    if (port)
        (void)snprintf(name, sizeof name, "%s from port %u", protocol(fd), ntohs(port));
    else if (!name_address(fd, &a, len, name, sizeof name))
        return;
    io_renamed(fd, name);
}

/* ---- connect, accept, socket ----------------------------------------------------------------- */

static void count_connect(struct io_call *c)
{
    const uint64_t took = io_ticks() - c->start;
    io_add(&c->row->connects, 1, false);
    io_add(&c->row->connect_ticks, took, false);
    (void)__atomic_fetch_or(&c->row->ways, 1u << IO_WAY_CONNECT, __ATOMIC_RELAXED);
}

REAL_OF(connect);
EXPORTED int connect(int fd, const struct sockaddr *to, socklen_t len)
{
    struct io_call c;
    char name[160];
    if (!io_begin(&c, fd))
        return REAL(connect)(fd, to, len);
    const int result = REAL(connect)(fd, to, len);
    const int saved = errno;
    struct sockaddr_storage a = { 0 };
    if ((result == 0 || saved == EINPROGRESS) && len <= sizeof a) {
        memcpy(&a, to, len);
        if (name_address(fd, &a, len, name, sizeof name)) {
            const uint64_t start = c.start;
            io_renamed(fd, name);
            if (!io_begin(&c, fd))
                goto done;
            c.start = start;
        }
    }
    count_connect(&c);
done:
    errno = saved;
    return result;
}

static int accepted(int fd, uint64_t start)
{
    const int saved = errno;
    if (fd >= 0) {
        io_opened(fd, io_socket, start, NULL);
        if (!inside_busy && io && io->on)
            name_accepted(fd);
    }
    errno = saved;
    return fd;
}

REAL_OF(accept);
EXPORTED int accept(int fd, struct sockaddr *from, socklen_t *len)
{
    const uint64_t start = io_ticks();
    return accepted(REAL(accept)(fd, from, len), start);
}

REAL_OF(accept4);
EXPORTED int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
    const uint64_t start = io_ticks();
    return accepted(REAL(accept4)(fd, from, len, flags), start);
}

REAL_OF(socket);
EXPORTED int socket(int domain, int type, int protocol_number)
{
    const uint64_t start = io_ticks();
    const int fd = REAL(socket)(domain, type, protocol_number);
    if (fd >= 0)
        io_opened(fd, io_socket, start, NULL);
    return fd;
}

REAL_OF(socketpair);
EXPORTED int socketpair(int domain, int type, int protocol_number, int ends[2])
{
    const uint64_t start = io_ticks();
    const int result = REAL(socketpair)(domain, type, protocol_number, ends);
    if (result == 0) {
        io_opened(ends[0], io_socket, start, NULL);
        io_opened(ends[1], io_socket, start, NULL);
    }
    return result;
}
