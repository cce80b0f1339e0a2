/* fold.pml: the protocol of slots, sealing, folding and recycling, for spin.
 *
 * Threads of a program fill blocks of one file; two folders count them, one at a time,
 * and clean what is counted. A folder may be killed before each of its steps, KILLS
 * times in all; the kernel then gives its lock back and a new one takes its place. The
 * program may die between any two steps of its own. Names are those of src/trace
 * (format.h, cells.c, folder.c) and src/record/lanes.c.
 *
 * What is left out: what an event says (a block holds one, which counts 1), nodes
 * beyond one per lane, histograms and values (cells like nodes), growing the file,
 * holes.
 *
 * Checked in every state:
 *   (a) the committed statistics are those of the blocks up to the committed carry: no
 *       event is counted twice, none is counted in part;
 *   (b) an event that was written is counted, or stands in a block where a reader
 *       finds it and a folder will count it: none is lost;
 * and at the steps concerned: no folder writes the copy that is the truth; no block is
 * cleaned before it is counted; a block that is taken is zeroed. At the end everything
 * is counted.
 *
 * Switches that break it, to see that this is noticed (tests/tools/test_model.py):
 *   MARK_FIRST COMMIT_FIRST NO_REPAIR TOKEN_LATE NO_TOKEN WRITE_TRUTH NO_LOCK
 *   FREE_BEFORE_ZERO NO_CARRY_CHECK
 */
#ifndef LANES
#define LANES 1 /* or 2 */
#endif
#ifndef LAST
#define LAST 3 /* blocks that each lane fills: 1 … 3 */
#endif
#ifndef KILLS
#define KILLS 2
#endif
#define BLOCKS 2
#define FOLDERS 2

/* ---- The file ------------------------------------------------------------------- */
mtype = { FREE, OPEN, SEALED, FOLDED, CLEANING };
mtype state[BLOCKS] = FREE; /* with lane and seq: one word of the block table */
byte lane[BLOCKS];
byte seq[BLOCKS];   /* from 1 */
bool event[BLOCKS]; /* the block's words: one event, or zero */

/* Cells: the carry of each lane (blocks counted), then its node (events). Two copies
 * each, with the commit that wrote them; 0 = never. */
#define CELLS (2 * LANES)
#define CARRY(l) (l)
#define NODE(l) (LANES + (l))
byte seq0[CELLS], seq1[CELLS], copy0[CELLS], copy1[CELLS];
byte commit;
byte token;
byte lock; /* the folder that holds it, 0 none */

/* current_copy() */
#define IN(s) ((s) != 0 && (s) <= commit)
#define TRUTH_IS_0(c) (IN(seq0[c]) && (!IN(seq1[c]) || seq0[c] > seq1[c]))
#define TRUTH_IS_1(c) (IN(seq1[c]) && !TRUTH_IS_0(c))
#define TRUTH(c) (TRUTH_IS_0(c) -> copy0[c] : (TRUTH_IS_1(c) -> copy1[c] : 0))

/* ---- Outside the file ------------------------------------------------------------ */
bool dead; /* the program is gone */
byte producing = LANES;
byte folding = FOLDERS;
byte kills;
bool written[LANES * 4]; /* by lane and seq: its event was written */

/* ---- The program ----------------------------------------------------------------- */
#define TAKE(b)                                                                        \
    state[b] == FREE ->                                                                \
    assert(!event[b]); /* zeroed */                                                    \
    state[b] = OPEN; lane[b] = me; seq[b] = n; mine = b

proctype producer(byte me)
{
    byte mine, n = 1;
    do
    :: dead -> break
    :: n > LAST -> break
    :: n <= LAST && !dead ->
        /* take_free(): CAS FREE → OPEN; waits while there is none */
        if
        :: atomic { !dead && TAKE(0) }
        :: atomic { !dead && TAKE(1) }
        :: dead -> break
        fi;
        /* the event: one store */
        if
        :: atomic { !dead -> event[mine] = true; written[me * 4 + n] = true }
        :: dead -> break
        fi;
        /* seal() */
        if
        :: atomic { !dead -> state[mine] = SEALED; n++ }
        :: dead -> break
        fi
    od;
    producing--
}

/* Death, sooner or later. */
proctype program()
{
    if
    :: producing == 0 -> dead = true
    :: dead = true
    fi
}

/* ---- A folder -------------------------------------------------------------------- */
#define KILLED atomic { kills < KILLS -> kills++; goto killed }

/* cells_repair() */
#define ABOVE(c) (seq0[c] > commit || seq1[c] > commit)
#define REPAIR(c)                                                                      \
    :: atomic { seq0[c] > commit -> seq0[c] = 0 }                                      \
    :: atomic { seq1[c] > commit -> seq1[c] = 0 }

/* load_cache() */
#ifdef NO_TOKEN
#define UP_TO_DATE (cached && known == commit)
#else
#define UP_TO_DATE (cached && known == commit && token == me)
#endif
inline load_cache()
{
    if
    :: UP_TO_DATE
    :: atomic { !UP_TO_DATE -> cached = false };
#ifndef NO_REPAIR
        do
        REPAIR(0)
        REPAIR(1)
#if LANES > 1
        REPAIR(2)
        REPAIR(3)
        :: !ABOVE(0) && !ABOVE(1) && !ABOVE(2) && !ABOVE(3) -> break
#else
        :: !ABOVE(0) && !ABOVE(1) -> break
#endif
        :: KILLED
        od;
#endif
        atomic {
            carry[0] = TRUTH(CARRY(0));
            node[0] = TRUTH(NODE(0));
#if LANES > 1
            carry[1] = TRUTH(CARRY(1));
            node[1] = TRUTH(NODE(1));
#endif
            known = commit; cached = true
        }
    :: KILLED
    fi
}

#define COUNTABLE(b) (state[b] == SEALED || (!alive && state[b] == OPEN))
#ifdef NO_CARRY_CHECK
#define COUNTED(b) false
#define NEXT(b) true
#else
#define COUNTED(b) (COUNTABLE(b) && seq[b] <= carry[lane[b]])
#define NEXT(b) (seq[b] == carry[lane[b]] + 1)
#endif

/* collect(): what is counted already is only marked */
inline mark_counted()
{
    do
    :: atomic { COUNTED(0) -> state[0] = FOLDED }
    :: atomic { COUNTED(1) -> state[1] = FOLDED }
    :: !COUNTED(0) && !COUNTED(1) -> break
    :: KILLED
    od
}

/* count_list(): into the cache, in sequence, as many as it likes */
#define COUNT(b)                                                                       \
    :: COUNTABLE(b) && !list[b] && NEXT(b) ->                                          \
        carry[lane[b]] = seq[b];                                                       \
        node[lane[b]] = node[lane[b]] + event[b];                                      \
        list[b] = true
inline count_list()
{
    atomic {
        do
        COUNT(0)
        COUNT(1)
        :: break
        od
    }
}

/* cells_publish(), one cell: the copy that is not the truth (the older one), then its
 * number. */
#ifdef WRITE_TRUTH
#define OTHER_IS_0(c) (seq0[c] > seq1[c])
#else
#define OTHER_IS_0(c) (seq0[c] <= seq1[c])
#endif
inline write_cell(c, value)
{
    if
    :: value == TRUTH(c)
    :: atomic { value != TRUTH(c) && OTHER_IS_0(c) ->
            assert(!TRUTH_IS_0(c)); copy0[c] = value }
        if :: seq0[c] = number :: KILLED fi
    :: atomic { value != TRUTH(c) && !OTHER_IS_0(c) ->
            assert(!TRUTH_IS_1(c)); copy1[c] = value }
        if :: seq1[c] = number :: KILLED fi
    :: KILLED
    fi
}

inline publish()
{
    number = commit + 1;
#ifdef COMMIT_FIRST
    commit = number;
#endif
#ifndef TOKEN_LATE
    if :: token = me :: KILLED fi;
#endif
    write_cell(CARRY(0), carry[0]);
    write_cell(NODE(0), node[0]);
#if LANES > 1
    write_cell(NODE(1), node[1]);
    write_cell(CARRY(1), carry[1]);
#endif
#ifdef TOKEN_LATE
    if :: token = me :: KILLED fi;
#endif
    if :: atomic { commit = number; known = number; number = 0 } :: KILLED fi
}

inline mark_folded()
{
    do
    :: atomic { list[0] -> state[0] = FOLDED; list[0] = false }
    :: atomic { list[1] -> state[1] = FOLDED; list[1] = false }
    :: !list[0] && !list[1] -> break
    :: KILLED
    od
}

/* clean_block(): a FOLDED one, or one left by a folder that was killed in the middle */
#define CLEAN(b)                                                                       \
    :: atomic {                                                                        \
            state[b] == FOLDED || state[b] == CLEANING ->                              \
            assert(state[b] == CLEANING || seq[b] <= TRUTH(CARRY(lane[b])));           \
            state[b] = CLEANING; lane[b] = 0; seq[b] = 0                               \
        }                                                                              \
        if :: FIRST(b) :: KILLED fi;                                                   \
        if :: SECOND(b) :: KILLED fi
#ifdef FREE_BEFORE_ZERO
#define FIRST(b) state[b] = FREE
#define SECOND(b) event[b] = false
#else
#define FIRST(b) event[b] = false
#define SECOND(b) state[b] = FREE
#endif
inline clean()
{
    do
    CLEAN(0)
    CLEAN(1)
    :: break
    :: KILLED
    od
}

#define LEFT(b) (state[b] == SEALED || state[b] == OPEN)
#define NEEDED (dead || state[0] == SEALED || state[1] == SEALED ||                    \
                (state[0] != FREE && state[1] != FREE))

proctype folder(byte me)
{
    byte number, known;
    byte carry[LANES], node[LANES];
    bool cached, alive, list[BLOCKS];
    do
    :: atomic { NEEDED -> alive = !dead }; /* asked before the pass */
#ifndef NO_LOCK
        if :: atomic { lock == 0 -> lock = me } :: KILLED fi;
#endif
        load_cache();
        mark_counted();
        count_list();
        if
        :: list[0] || list[1] ->
#ifdef MARK_FIRST
            atomic {
                if :: list[0] -> state[0] = FOLDED :: else fi;
                if :: list[1] -> state[1] = FOLDED :: else fi
            }
#endif
            publish();
            mark_folded()
        :: !list[0] && !list[1]
        fi;
        if
        :: alive -> clean()
        :: !alive
        fi;
        /* tracefile_unlock(); the last pass over a dead program's file is the end */
        if
        :: atomic {
                !alive && !LEFT(0) && !LEFT(1) ->
                lock = 0; known = 0; cached = false; carry[0] = 0; node[0] = 0;
#if LANES > 1
                carry[1] = 0; node[1] = 0;
#endif
                break
            }
        :: atomic { alive || LEFT(0) || LEFT(1) -> lock = 0 }
        :: KILLED
        fi;
        goto pass_done;
killed:
        atomic { /* the kernel gives the lock back; the cache is gone */
            if
            :: lock == me -> lock = 0
            :: else
            fi;
            number = 0; known = 0; cached = false; alive = false;
            carry[0] = 0; node[0] = 0; list[0] = false; list[1] = false;
#if LANES > 1
            carry[1] = 0; node[1] = 0;
#endif
        }
pass_done:
        skip
    od;
    folding--
}

/* ---- What must hold --------------------------------------------------------------- */

#define W(l, n) (written[(l) * 4 + (n)])
/* Events of the lane's blocks 1 … n. */
#define EVENTS(l, n)                                                                   \
    (((n) >= 1 && W(l, 1)) + ((n) >= 2 && W(l, 2)) + ((n) >= 3 && W(l, 3)))
#define RIGHT(l) (TRUTH(NODE(l)) == EVENTS(l, TRUTH(CARRY(l))))

#define HOLDS(b, l, n)                                                                 \
    (event[b] && lane[b] == (l) && seq[b] == (n) &&                                    \
     (state[b] == OPEN || state[b] == SEALED || state[b] == FOLDED))
#define KEPT(l, n)                                                                     \
    (!W(l, n) || (n) <= TRUTH(CARRY(l)) || HOLDS(0, l, n) || HOLDS(1, l, n))
#define ALL_KEPT(l) (KEPT(l, 1) && KEPT(l, 2) && KEPT(l, 3))

active proctype monitor()
{
    do
    :: atomic { !RIGHT(0) -> assert(false) }
    :: atomic { !ALL_KEPT(0) -> assert(false) }
#if LANES > 1
    :: atomic { !RIGHT(1) -> assert(false) }
    :: atomic { !ALL_KEPT(1) -> assert(false) }
#endif
    :: atomic {
            folding == 0 ->
            assert(TRUTH(NODE(0)) == EVENTS(0, LAST));
#if LANES > 1
            assert(TRUTH(NODE(1)) == EVENTS(1, LAST));
#endif
            break
        }
    od
}

init {
    atomic {
        run producer(0);
#if LANES > 1
        run producer(1);
#endif
        run folder(1);
        run folder(2);
        run program()
    }
}
