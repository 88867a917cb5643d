/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.pml: can a wake-up be lost?
 *
 * The two ends of a ring as lib/ring/end.h has them, on a machine that buffers stores. Each end
 * writes two words that the other one reads: its index, and its wish (with EVENT_IDX the event,
 * else the flag). A store goes into a buffer of its word, from where it reaches memory at any
 * later time, in order for that word and in no order with the other; a full fence waits until
 * both buffers are empty. Indices wrap at W, so every case of the event test is passed.
 *
 * An end consumes what it sees, produces, publishes and arms, by turn or one after the other,
 * and sleeps unless told that there is more. If both sleep while requests are out, the model is
 * stuck, which the verifier reports as an invalid end state.
 *
 * What is left out, one at a time and on one side (DRIVER or DEVICE), to see that it is needed:
 *   NO_FENCE_PUBLISH  NO_FENCE_ARM  NO_FENCE_TURN  NO_RECHECK_ARM  NO_RECHECK_TURN
 * EVENT_IDX chooses the protocol.
 */
#ifndef W
#define W 8 /* indices are modulo W */
#endif
#ifndef TOTAL
#define TOTAL 10 /* requests; more than W */
#endif
#define N 2 /* ring size */

#define DRIVER 0
#define DEVICE 1
#define MINUS(a, b) (((a) + W - (b)) % W)

/* The side that leaves something out; by default none does. */
#define NEITHER 2
#ifndef NO_FENCE_PUBLISH
#define NO_FENCE_PUBLISH NEITHER
#endif
#ifndef NO_FENCE_ARM
#define NO_FENCE_ARM NEITHER
#endif
#ifndef NO_FENCE_TURN
#define NO_FENCE_TURN NEITHER
#endif
#ifndef NO_RECHECK_ARM
#define NO_RECHECK_ARM NEITHER
#endif
#ifndef NO_RECHECK_TURN
#define NO_RECHECK_TURN NEITHER
#endif

byte idx[2], wish[2];
bool bell[2];
chan idx_buffer[2] = [2] of { byte };
chan wish_buffer[2] = [2] of { byte };

/* A buffer reaches memory, at any time. */
proctype drain_idx(byte me)
{
	byte v;
end:
	do
	:: atomic { idx_buffer[me] ? v -> idx[me] = v; v = 0 }
	od
}

proctype drain_wish(byte me)
{
	byte v;
end:
	do
	:: atomic { wish_buffer[me] ? v -> wish[me] = v; v = 0 }
	od
}

/* A full fence, but on the side that leaves it out. */
#define FENCE(without) \
	((without) == me || (empty(idx_buffer[me]) && empty(wish_buffer[me])))

inline store_idx()
{
	if
	:: exposed != next -> idx_buffer[me] ! next; exposed = next
	:: else
	fi
}

inline store_wish()
{
#ifdef EVENT_IDX
	if
	:: asked != cursor -> wish_buffer[me] ! cursor; asked = cursor
	:: else
	fi
#else
	if
	:: asked != 0 -> wish_buffer[me] ! 0; asked = 0
	:: else
	fi
#endif
}

inline store_no_wish()
{
#ifndef EVENT_IDX
	if
	:: asked != 1 -> wish_buffer[me] ! 1; asked = 1
	:: else
	fi
#else
	skip
#endif
}

/* Loads the peer's wish and acts on it. */
inline decide()
{
	d_step {
		peer_wish = wish[1 - me];
#ifdef EVENT_IDX
		if
		:: MINUS(exposed, peer_wish + 1) < MINUS(exposed, decided) || owed ->
			bell[1 - me] = true
		:: else
		fi;
#else
		if
		:: peer_wish == 0 -> bell[1 - me] = true
		:: else
		fi;
#endif
		decided = exposed;
		owed = false;
		peer_wish = 0
	}
}

inline recheck(without)
{
	more = ((without) != me && idx[1 - me] != cursor)
}

inline publish()
{
	store_idx();
	if
	:: exposed != decided || owed ->
		FENCE(NO_FENCE_PUBLISH);
		decide()
	:: else
	fi
}

inline arm()
{
	store_wish();
	FENCE(NO_FENCE_ARM);
	recheck(NO_RECHECK_ARM)
}

inline turn()
{
	store_idx();
	store_wish();
	FENCE(NO_FENCE_TURN);
	if
	:: exposed != decided || owed -> decide()
	:: else
	fi;
	recheck(NO_RECHECK_TURN)
}

/* Entries that may be produced now: requests that fit, or answers to what was consumed. */
#define MAY_PRODUCE ((me == DRIVER && produced < TOTAL && produced - consumed < N) || \
		     (me == DEVICE && produced < consumed))

proctype one_end(byte me)
{
	byte next, exposed, decided, cursor, asked, peer_wish, produced, consumed;
	bool more, owed = true;

	do
	:: me == DRIVER && consumed == TOTAL -> break
	:: else ->
		if
		:: true -> store_no_wish()
		:: true
		fi;
		d_step {
			consumed = consumed + MINUS(idx[1 - me], cursor);
			cursor = idx[1 - me]
		}
		/* One at least, if nothing else can come; then as many more as one likes. */
		do
		:: MAY_PRODUCE -> d_step { next = (next + 1) % W; produced++ }
		:: me == DRIVER && (produced > consumed || produced == TOTAL) -> break
		:: me == DEVICE && produced == consumed -> break
		od;
		if
		:: true -> turn()
		:: true -> publish(); arm()
		fi;
		if
		:: more
		:: else ->
			if
			:: me == DRIVER && produced == consumed /* nothing to wait for */
			:: me == DRIVER && produced != consumed ->
				bell[me];
				bell[me] = false
			:: me == DEVICE ->
end:				bell[me];
				bell[me] = false
			fi
		fi
	od
}

init
{
	atomic {
		run drain_idx(DRIVER);
		run drain_idx(DEVICE);
		run drain_wish(DRIVER);
		run drain_wish(DEVICE);
		run one_end(DRIVER);
		run one_end(DEVICE)
	}
}
