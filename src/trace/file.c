/* file.c: create, open, map and extend a process file. See file.h. */
#include "trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "trace/space.h"

enum { FIRST_FREE_BLOCK = 6 }; /* head, live, table, sites, strings, lanes */

/* ---- Small things read from /proc without stdio -------------------------------- */

static ssize_t slurp(const char *path, char *ret_text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, ret_text, size - 1);
    (void)close(fd);
    if (n < 0)
        return -EIO;
    ret_text[n] = '\0';
    return n;
}

/* Field n (> 2) of a /proc stat line, from its closing parenthesis on. */
static uint64_t stat_field(const char *p, int n)
{
    for (int field = 2; p && field < n; field++)
        p = strchr(p + 1, ' ');
    uint64_t value = 0;
    for (p = p ? p + 1 : NULL; p && *p >= '0' && *p <= '9'; p++)
        value = value * 10 + (uint64_t)(*p - '0');
    return value;
}

uint64_t process_start_ticks(uint32_t pid)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (slurp(path, text, sizeof text) <= 0)
        return 0;
    /* The name in parentheses may hold anything: count fields after the last ')'. */
    const char *p = strrchr(text, ')');
    if (!p || p[1] == '\0')
        return 0;
    /* A zombie has left its memory behind and is gone for our purpose, but a main
     * thread that ended before the others is a zombie too: field 20 counts threads. */
    bool zombie = p[2] == 'Z' || p[2] == 'X';
    if (zombie && stat_field(p, 20) <= 1)
        return 0;
    return stat_field(p, 22);
}

bool tracefile_owner_alive(const struct trace_head *head)
{
    uint64_t start = process_start_ticks(head->pid);
    return start != 0 && start == head->proc_start;
}

bool boot_id_read(uint8_t ret_id[16])
{
    char text[64] = "";
    if (slurp("/proc/sys/kernel/random/boot_id", text, sizeof text) <= 0)
        return false;
    unsigned nibbles = 0;
    for (const char *p = text; *p && nibbles < 32; p++) {
        int v = *p >= '0' && *p <= '9'   ? *p - '0'
                : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
                                         : -1;
        if (v < 0)
            continue;
        ret_id[nibbles / 2] = (uint8_t)(ret_id[nibbles / 2] << 4 | v);
        nibbles++;
    }
    return nibbles == 32;
}

/* ---- Mapping ------------------------------------------------------------------- */

/* Maps the file with room to grow: pages past its end exist as addresses only, and
 * nobody touches them before fallocate has made them real. The base is aligned to
 * the block size, which the hot path relies on. */
static int map_file(struct tracefile *f, uint64_t want_blocks)
{
    for (uint64_t blocks = want_blocks; blocks >= 16; blocks /= 2) {
        size_t len = (size_t)blocks * BLOCK_SIZE;
        uint8_t *room = mmap(NULL, len + BLOCK_SIZE, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED)
            continue; /* an address-space limit: be content with less */
        uint8_t *base = (uint8_t *)(((uintptr_t)room + BLOCK_SIZE - 1) &
                                    ~(uintptr_t)(BLOCK_SIZE - 1));
        void *p = mmap(base, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, f->fd,
                       0);
        if (p == MAP_FAILED) {
            int rc = -errno;
            (void)munmap(room, len + BLOCK_SIZE);
            return rc;
        }
        if (base > room)
            (void)munmap(room, (size_t)(base - room));
        (void)munmap(base + len, (size_t)(room + BLOCK_SIZE - base));
        f->base = base;
        f->cap_blocks = blocks;
        return 0;
    }
    return -ENOMEM;
}

/* Places of files that were retired, oldest first: zeroed memory nobody needs. The
 * newest is left alone for one session more: who was about to write there may be slow.
 * An older one is, too, while a thread is known that may be. */
enum { ROOMS_MOST = 8 };
static struct room {
    uint8_t *base;
    uint64_t blocks;
    uint32_t number;
} rooms[ROOMS_MOST];
static unsigned room_count;
static bool (*is_held)(uint32_t number);

void tracefile_ask(bool (*held)(uint32_t number))
{
    is_held = held;
}

static bool take_room(uint64_t want_blocks, struct room *ret_room)
{
    for (unsigned i = 0; i + 1 < room_count; i++) {
        if (rooms[i].blocks < want_blocks || (is_held && is_held(rooms[i].number)))
            continue;
        *ret_room = rooms[i];
        room_count--;
        memmove(&rooms[i], &rooms[i + 1], (room_count - i) * sizeof rooms[0]);
        return true;
    }
    return false;
}

/* As map_file(), where a file of an earlier session was. */
static int map_again(struct tracefile *f, uint64_t want_blocks)
{
    struct room room;
    if (!take_room(want_blocks, &room))
        return map_file(f, want_blocks);
    void *p = mmap(room.base, (size_t)room.blocks * BLOCK_SIZE, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED, f->fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    f->base = room.base;
    f->cap_blocks = room.blocks;
    return 0;
}

/* Where every page that could be written is counted against the machine's memory, the
 * kernel may take the old mapping away and refuse the new one. */
static bool counts_every_page(void)
{
    char mode = '0';
    const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, &mode, 1) : 0;
    if (fd >= 0)
        (void)close(fd);
    return n == 1 && mode == '2';
}

void tracefile_retire(struct tracefile *f, uint32_t number)
{
    if (!f->base || room_count == ROOMS_MOST || counts_every_page())
        return;
    void *p = mmap(f->base, (size_t)f->cap_blocks * BLOCK_SIZE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (p != MAP_FAILED)
        rooms[room_count++] = (struct room){ f->base, f->cap_blocks, number };
}

static void refresh_size(struct tracefile *f)
{
    struct stat st;
    if (fstat(f->fd, &st) == 0 && st.st_dev == f->id.dev && st.st_ino == f->id.ino)
        __atomic_store_n(&f->known_blocks, (uint64_t)st.st_size / BLOCK_SIZE,
                         __ATOMIC_RELAXED);
}

static int check_fd(struct tracefile *f)
{
    return ownfile_check(&f->fd, &f->id, f->path);
}

uint8_t *tracefile_block(struct tracefile *f, uint32_t block)
{
    if (block >= f->cap_blocks)
        return NULL;
    if (block >= __atomic_load_n(&f->known_blocks, __ATOMIC_RELAXED)) {
        refresh_size(f);
        if (block >= __atomic_load_n(&f->known_blocks, __ATOMIC_RELAXED))
            return NULL;
    }
    return f->base + (size_t)block * BLOCK_SIZE;
}

/* ---- Blocks -------------------------------------------------------------------- */

int tracefile_take_block(struct tracefile *f, uint32_t *ret_block)
{
    struct trace_live *live = tracefile_live(f);
    int rc = check_fd(f);
    if (rc < 0)
        return rc;
    if (!control_take(f->control, 1))
        return -EDQUOT;
    uint32_t block = __atomic_fetch_add(&live->next_block, 1, __ATOMIC_RELAXED);
    if (block >= f->cap_blocks || block >= MAX_BLOCKS) {
        __atomic_fetch_sub(&live->next_block, 1, __ATOMIC_RELAXED);
        rc = -ENOMEM;
    } else {
        rc = space_reserve(f->fd, (uint64_t)block * BLOCK_SIZE, BLOCK_SIZE);
        if (rc < 0) { /* give the number back if nobody took one after us */
            uint32_t expected = block + 1;
            (void)__atomic_compare_exchange_n(&live->next_block, &expected, block,
                                              false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED);
        }
    }
    if (rc < 0) {
        control_give(f->control, 1);
        return rc;
    }
    /* known_blocks only ever needs to be a lower bound. */
    refresh_size(f);
    *ret_block = block;
    return 0;
}

static int publish_kind(struct tracefile *f, uint32_t block, enum block_kind kind)
{
    uint32_t index = block / TABLE_PER_BLOCK;
    if (kind != BLOCK_TABLE) {
        int rc = tracefile_need(f, tracefile_head(f)->table, index, BLOCK_TABLE);
        if (rc < 0)
            return rc;
    }
    uint64_t *entry = tracefile_entry(f, block);
    if (entry)
        __atomic_store_n(entry, block_word(kind, 0, 0, 0), __ATOMIC_RELEASE);
    return 0;
}

int tracefile_need(struct tracefile *f, uint32_t *dir, uint32_t index,
                   enum block_kind kind)
{
    if (__atomic_load_n(&dir[index], __ATOMIC_ACQUIRE) != 0)
        return 0;
    uint32_t block;
    int rc = tracefile_take_block(f, &block);
    if (rc < 0)
        return rc;
    uint32_t expected = 0;
    if (!__atomic_compare_exchange_n(&dir[index], &expected, block, false,
                                     __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        return 0; /* somebody else made it; ours is leaked, 64 KiB, once */
    return publish_kind(f, block, kind);
}

uint64_t *tracefile_entry(struct tracefile *f, uint32_t block)
{
    uint32_t index = block / TABLE_PER_BLOCK;
    if (index >= TABLE_DIR)
        return NULL;
    uint32_t at = __atomic_load_n(&tracefile_head(f)->table[index], __ATOMIC_ACQUIRE);
    uint8_t *table = at ? tracefile_block(f, at) : NULL;
    return table ? (uint64_t *)table + block % TABLE_PER_BLOCK : NULL;
}

static uint8_t *dir_item(struct tracefile *f, const uint32_t *dir, uint32_t max,
                         uint32_t number, uint32_t per_block, size_t size)
{
    if (number >= max)
        return NULL;
    uint32_t at = __atomic_load_n(&dir[number / per_block], __ATOMIC_ACQUIRE);
    uint8_t *block = at ? tracefile_block(f, at) : NULL;
    return block ? block + (size_t)(number % per_block) * size : NULL;
}

struct site_entry *tracefile_site(struct tracefile *f, uint32_t site)
{
    return (void *)dir_item(f, tracefile_head(f)->sites, MAX_SITES, site,
                            SITES_PER_BLOCK, 32);
}
struct lane_cell *tracefile_lane(struct tracefile *f, uint32_t lane)
{
    return (void *)dir_item(f, tracefile_head(f)->lanes, MAX_LANES, lane,
                            LANES_PER_BLOCK, 8192);
}
struct node_cell *tracefile_node(struct tracefile *f, uint32_t node)
{
    return (void *)dir_item(f, tracefile_head(f)->nodes, MAX_NODES, node,
                            NODES_PER_BLOCK, 512);
}
struct chunk_cell *tracefile_chunk(struct tracefile *f, uint32_t chunk)
{
    return (void *)dir_item(f, tracefile_head(f)->chunks, MAX_CHUNKS, chunk,
                            CHUNKS_PER_BLOCK, 1088);
}
struct value_cell *tracefile_value(struct tracefile *f, uint32_t value)
{
    return (void *)dir_item(f, tracefile_head(f)->values, MAX_VALUES, value,
                            VALUES_PER_BLOCK, 128);
}

bool tracefile_may_grow(const struct tracefile *f)
{
    uint64_t own = __atomic_load_n(&tracefile_live(f)->next_block, __ATOMIC_RELAXED);
    uint64_t used = __atomic_load_n(&f->control->used_blocks, __ATOMIC_RELAXED);
    uint64_t max = f->control->max_blocks;
    if (f->control->level == SONDE_BASIC)
        return own < 32; /* no timeline: only a ring to record into */
    return own < f->cap_blocks && used < max && own < max - used;
}

/* ---- Lock ----------------------------------------------------------------------
 * Three bytes of the file are locked with fcntl: the first by whoever folds, or shared
 * by those who read; the second, shared, by readers that wait; the third by folders
 * that wait for readers. A busy folder holds the first nearly all the time and steps
 * back when it sees the second. A reader that comes again and again steps back when it
 * sees the third, and a folder that was kept out then has a turn as long as its wait:
 * recording threads live on what it folds. */

enum { FOLD_BYTE = 0, READER_BYTE = 1, FOLDER_BYTE = 2 };
#define READER_PATIENCE_NS 1e9 /* how long a folder gives way to readers */
#define READER_WAIT_NS     5e9 /* how long a reader waits: it holds up no program */
#define COURTESY_NS        1e8 /* how long a reader that comes lets a folder go first */
#define TURN_NS            3e8 /* the longest turn: well within a reader's patience */

static int set_lock(int fd, short type, off_t byte)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1
    };
    int rc;
    do {
        rc = fcntl(fd, F_SETLK, &lock);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno == EACCES ? -EAGAIN : -errno;
}

/* fcntl locks belong to processes. Between threads of the process that owns the file
 * (a recording thread that folds, the drain thread, a reader) these words decide. */
static uint32_t own_lock, own_reading, own_readers, own_folder_waits;

static bool is_own(uint32_t owner)
{
    return owner == (uint32_t)getpid();
}

static bool own_try(bool own)
{
    return !own || !__atomic_exchange_n(&own_lock, 1, __ATOMIC_ACQUIRE);
}

static void own_give(bool own)
{
    if (own)
        __atomic_store_n(&own_lock, 0, __ATOMIC_RELEASE);
}

/* What another process holds of a byte: F_UNLCK for nothing. */
static short held_by_others(int fd, short type, off_t byte)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1
    };
    return fcntl(fd, F_GETLK, &lock) == 0 ? lock.l_type : F_UNLCK;
}

static bool reader_waits(const struct tracefile *f, bool own)
{
    return (own && __atomic_load_n(&own_readers, __ATOMIC_RELAXED)) ||
           held_by_others(f->fd, F_WRLCK, READER_BYTE) != F_UNLCK;
}

static bool folder_waits(int fd, bool own)
{
    return (own && __atomic_load_n(&own_folder_waits, __ATOMIC_RELAXED)) ||
           held_by_others(fd, F_RDLCK, FOLDER_BYTE) != F_UNLCK;
}

/* True when a reader should go first. One that is stopped is not waited for long. */
static bool give_way(struct tracefile *f, bool own, uint64_t now)
{
    uint64_t since = __atomic_load_n(&f->gave_way, __ATOMIC_RELAXED);
    if ((int64_t)(__atomic_load_n(&f->turn_ends, __ATOMIC_RELAXED) - now) > 0)
        return false;
    if (!reader_waits(f, own)) {
        __atomic_store_n(&f->gave_way, 0, __ATOMIC_RELAXED);
        return false;
    }
    if (since == 0)
        __atomic_store_n(&f->gave_way, since = now, __ATOMIC_RELAXED);
    return (double)(now - since) < READER_PATIENCE_NS * ticks_per_ns();
}

/* A reader is in the way: says so, and remembers since when. */
static int kept_out(struct tracefile *f, bool own, uint64_t now)
{
    if (__atomic_load_n(&f->kept_out, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&f->kept_out, now, __ATOMIC_RELAXED);
    if (own)
        __atomic_store_n(&own_folder_waits, 1, __ATOMIC_RELAXED);
    (void)set_lock(f->fd, F_WRLCK, FOLDER_BYTE);
    return -EAGAIN;
}

bool tracefile_kept_out(const struct tracefile *f)
{
    return __atomic_load_n(&f->kept_out, __ATOMIC_RELAXED) != 0;
}

static void begin_turn(struct tracefile *f, bool own, uint64_t now)
{
    const uint64_t since = __atomic_exchange_n(&f->kept_out, 0, __ATOMIC_RELAXED);
    if (since == 0)
        return;
    const uint64_t most = (uint64_t)(TURN_NS * ticks_per_ns()), wait = now - since;
    __atomic_store_n(&f->turn_ends, now + (wait < most ? wait : most),
                     __ATOMIC_RELAXED);
    if (own)
        __atomic_store_n(&own_folder_waits, 0, __ATOMIC_RELAXED);
    (void)set_lock(f->fd, F_UNLCK, FOLDER_BYTE);
}

int tracefile_lock(struct tracefile *f)
{
    const bool own = is_own(tracefile_head(f)->pid);
    const uint64_t now = ticks_now();
    int rc = check_fd(f);
    if (rc < 0)
        return rc;
    if (give_way(f, own, now))
        return kept_out(f, own, now);
    if (!own_try(own))
        return __atomic_load_n(&own_reading, __ATOMIC_RELAXED) ? kept_out(f, own, now)
                                                               : -EAGAIN;
    rc = set_lock(f->fd, F_WRLCK, FOLD_BYTE);
    if (rc == 0) {
        begin_turn(f, own, now);
        return 0;
    }
    own_give(own);
    return rc == -EAGAIN && held_by_others(f->fd, F_WRLCK, FOLD_BYTE) == F_RDLCK
               ? kept_out(f, own, now)
               : rc;
}

void tracefile_unlock(struct tracefile *f)
{
    if (check_fd(f) == 0)
        (void)set_lock(f->fd, F_UNLCK, FOLD_BYTE);
    own_give(is_own(tracefile_head(f)->pid));
}

void tracefile_forked(void)
{
    __atomic_store_n(&own_lock, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&own_reading, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&own_readers, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&own_folder_waits, 0, __ATOMIC_RELAXED);
}

/* Inside the owner, fcntl would give a reader what a folder of ours holds, and take it
 * away when the reader is done. There the word comes first. */
static int try_read_lock(int fd, bool own)
{
    if (!own_try(own))
        return -EAGAIN;
    int rc = set_lock(fd, F_RDLCK, FOLD_BYTE);
    if (rc < 0)
        own_give(own);
    else if (own)
        __atomic_store_n(&own_reading, 1, __ATOMIC_RELAXED);
    return rc;
}

static bool within(uint64_t start, double ns)
{
    return (double)(ticks_now() - start) < ns * ticks_per_ns();
}

bool tracefile_read_lock(int fd, uint32_t owner)
{
    const struct timespec nap = { 0, 1000000 };
    const bool own = is_own(owner);
    uint64_t start = ticks_now();
    while (folder_waits(fd, own) && within(start, COURTESY_NS))
        (void)nanosleep(&nap, NULL);
    int rc = try_read_lock(fd, own);
    if (rc != -EAGAIN)
        return rc == 0;
    if (own)
        __atomic_add_fetch(&own_readers, 1, __ATOMIC_RELAXED);
    (void)set_lock(fd, F_RDLCK, READER_BYTE);
    start = ticks_now();
    while ((rc = try_read_lock(fd, own)) == -EAGAIN && within(start, READER_WAIT_NS))
        (void)nanosleep(&nap, NULL);
    (void)set_lock(fd, F_UNLCK, READER_BYTE);
    if (own)
        __atomic_sub_fetch(&own_readers, 1, __ATOMIC_RELAXED);
    return rc == 0;
}

static void done_reading(bool own)
{
    if (own)
        __atomic_store_n(&own_reading, 0, __ATOMIC_RELAXED);
    own_give(own);
}

void tracefile_read_unlock(int fd, uint32_t owner)
{
    (void)set_lock(fd, F_UNLCK, FOLD_BYTE);
    done_reading(is_own(owner));
}

/* Closing any descriptor of a file gives back all locks the process has on it. */
void tracefile_read_close(int fd, uint32_t owner)
{
    bool locked = is_own(owner) && tracefile_read_lock(fd, owner);
    (void)close(fd);
    done_reading(locked);
}

/* ---- Create, open, close ------------------------------------------------------- */

static void fill_head(struct trace_head *h, const struct control *control,
                      uint64_t forked_from_ns, const struct clock_reading *now)
{
    h->major = TRACE_MAJOR;
    h->minor = TRACE_MINOR;
    h->block_size = BLOCK_SIZE;
    h->pid = (uint32_t)getpid();
    h->ppid = (uint32_t)getppid();
    h->proc_start = process_start_ticks(h->pid);
    h->tick_source = ticks_source();
    h->level = control->level;
    h->forked_from_ns = forked_from_ns;
    h->start = *now;
    (void)boot_id_read(h->boot_id);
    ownfile_exe(h->exe, sizeof h->exe);
    h->table[0] = 2;
    h->sites[0] = 3;
    h->strings[0] = 4;
    h->lanes[0] = 5;
}

static int lay_out(struct tracefile *f, uint64_t forked_from_ns,
                   const struct clock_reading *now)
{
    struct trace_head *h = tracefile_head(f);
    struct trace_live *live = tracefile_live(f);
    fill_head(h, f->control, forked_from_ns, now);
    live->gate = __atomic_load_n(&f->control->gate, __ATOMIC_RELAXED);
    live->next_block = FIRST_FREE_BLOCK;
    live->string_bytes = 1; /* offset 0 is the empty string */
    live->site_count = FIRST_SITE;
    live->last_ticks = now->ticks;
    static const uint8_t kinds[FIRST_FREE_BLOCK] = { BLOCK_HEAD,    BLOCK_LIVE,
                                                     BLOCK_TABLE,   BLOCK_SITES,
                                                     BLOCK_STRINGS, BLOCK_LANES };
    for (uint32_t i = 0; i < FIRST_FREE_BLOCK; i++) {
        uint64_t *entry = tracefile_entry(f, i);
        if (!entry)
            return SONDE_E_FORMAT;
        *entry = block_word(kinds[i], 0, 0, 0);
    }
    /* Last: until now the file is nothing a reader would accept. */
    __atomic_store_n(&h->magic, TRACE_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

int tracefile_create(const char *dir, struct control *control, uint64_t forked_from_ns,
                     struct tracefile *ret_file)
{
    struct tracefile f = { .fd = -1, .control = control };
    struct clock_reading now;
    clock_read(&now);
    if (!control_take(control, FIRST_FREE_BLOCK))
        return -EDQUOT;
    int rc = ownfile_create(dir, "", now.real_ns, ".sonde", f.path, sizeof f.path,
                            &f.fd, &f.id);
    if (rc < 0)
        goto refused;
    /* Head and live page need one page each; the blocks behind them are whole. */
    const uint64_t page = 4096, body = 2ULL * BLOCK_SIZE;
    rc = space_reserve(f.fd, 0, page);
    if (rc == 0)
        rc = space_reserve(f.fd, BLOCK_SIZE, page);
    if (rc == 0)
        rc = space_reserve(f.fd, body, (FIRST_FREE_BLOCK - 2ULL) * BLOCK_SIZE);
    if (rc == 0)
        rc = map_again(&f, control->max_blocks < MAX_BLOCKS ? control->max_blocks + 64
                                                            : MAX_BLOCKS);
    if (rc < 0)
        goto failed;
    refresh_size(&f);
    rc = lay_out(&f, forked_from_ns, &now);
    if (rc < 0)
        goto failed;
    *ret_file = f;
    return 0;
failed:
    (void)unlink(f.path);
    tracefile_close(&f);
refused:
    control_give(control, FIRST_FREE_BLOCK);
    return rc;
}

int tracefile_open(const char *path, struct control *control,
                   struct tracefile *ret_file)
{
    struct tracefile f = { .fd = -1, .control = control };
    int n = snprintf(f.path, sizeof f.path, "%s", path);
    if (n < 0 || (size_t)n >= sizeof f.path)
        return -ENAMETOOLONG;
    f.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (f.fd < 0)
        return -errno;
    struct stat st;
    struct trace_head h;
    int rc = 0;
    if (fstat(f.fd, &st) != 0)
        rc = -errno;
    else if (!S_ISREG(st.st_mode) ||
             pread(f.fd, &h, sizeof h, 0) != (ssize_t)sizeof h ||
             h.magic != TRACE_MAGIC || h.block_size != BLOCK_SIZE ||
             st.st_size < FIRST_FREE_BLOCK * BLOCK_SIZE)
        rc = SONDE_E_FORMAT;
    else if (h.major != TRACE_MAJOR)
        rc = SONDE_E_VERSION;
    if (rc == 0) {
        f.id = (struct ownfile_id){ st.st_dev, st.st_ino };
        uint64_t size = ((uint64_t)st.st_size + BLOCK_SIZE - 1) / BLOCK_SIZE;
        uint64_t want = control ? control->max_blocks + 64 : size;
        if (want < size)
            want = size;
        rc = map_file(&f, want < MAX_BLOCKS ? (want < 16 ? 16 : want) : MAX_BLOCKS);
    }
    if (rc < 0) {
        (void)close(f.fd);
        return rc;
    }
    refresh_size(&f);
    *ret_file = f;
    return 0;
}

void tracefile_close(struct tracefile *f)
{
    if (f->base)
        (void)munmap(f->base, (size_t)f->cap_blocks * BLOCK_SIZE);
    f->base = NULL;
    ownfile_close(&f->fd, &f->id);
}
