/*
 * What one kind of device does, and another does not: a row per device, read by both halves of the
 * fake wherever devices differ. A field of zero is what rxe does, or no limit beyond the default.
 */
#ifndef FAKE_PROFILE_H
#define FAKE_PROFILE_H

#include "fake/fake.h"

/* How many entries a CQ has for n that were asked for. */
enum fake_rounding {
	FAKE_EXACT,	   /* n, so that a count that is off shows */
	FAKE_POWER_OF_TWO, /* one less than a power of two, at least n */
	FAKE_ONE_LESS	   /* one less than the next power of two, be that n: 63 for 64 */
};

/* Enhanced connection establishment. */
enum fake_ece_support {
	FAKE_NO_ECE,	/* neither call, unless a test gives the device some */
	FAKE_ECE_QUERY, /* it can be asked for its vendor, and takes nothing from the peer */
};

/* When the work of a queue pair in error comes back. */
enum fake_flush {
	FAKE_FLUSH_AT_ONCE,
	FAKE_FLUSH_WHEN_POLLED, /* by a poll that finds nothing, for which an event asks */
	FAKE_FLUSH_UNASKED	/* the same without the event */
};

enum fake_last_wqe { FAKE_LAST_WQE_AT_ONCE, FAKE_LAST_WQE_LATE, FAKE_LAST_WQE_NEVER };

/* What becomes of a queue pair's completions when it is destroyed. */
enum fake_orphans {
	FAKE_ORPHANS_KEPT,
	FAKE_ORPHANS_PURGED,
	FAKE_ORPHANS_FATAL /* polling them follows a pointer to the queue pair */
};

/* What becomes of work that is posted to a queue pair in error. */
enum fake_late_post {
	FAKE_LATE_RECEIVE_STAYS, /* sends come back; receives only with the next change to error */
	FAKE_LATE_POST_FLUSHED,
	FAKE_LATE_POST_REFUSED /* which also cuts short a chain whose first part broke it */
};

/* Which fields of a datagram's completion are set. */
enum fake_wc_fields { FAKE_WC_ALL, FAKE_WC_NO_ADDRESS };

struct fake_profile {
	const char *name;
	enum fake_kind kind;

	/* Limits; 0: the default, -1: none at all. */
	int max_qp_wr, max_cqe, max_sge, max_sge_rd, max_srq, max_srq_wr, max_rd_atom;
	int max_mcast_grp, max_inline, comp_vectors;
	bool no_ud, no_atomics;

	/* Queues. */
	enum fake_rounding cqe;
	bool caps_are_rounded;	   /* a queue pair may have more than was asked for */
	bool inline_is_lowered;	   /* rather than refused */
	bool srq_most_is_refused;  /* the largest of which the device itself tells */
	int too_big;		   /* errno for more than it has; -1: none is set; 0: EINVAL */
	bool errors_are_negative;  /* of the calls that post */
	int send_before_rts;	   /* errno; -1: it is taken, and waits; 0: EINVAL */
	enum fake_ece_support ece;

	/* Work. */
	bool reads_sge0;	/* of a read or write without any */
	bool reads_are_overtaken; /* by sends and writes behind them */
	bool read_sink_is_remote; /* a read ends only where the peer may write */
	bool flushes_only_signalled;
	bool blames_the_oldest; /* that is not known to be done, when one fails */
	bool too_long_is_told; /* of a message, to both ends; otherwise as an operation error */
	bool access_error_first; /* any failure raises QP_ACCESS_ERR before it completes */
	bool copies_when_polled; /* a small message reaches its buffer then */
	bool keeps_receives;	 /* receives of a queue pair in error never come back */
	bool srq_half_received;	 /* one in error takes a receive along: half a message */
	enum fake_flush flush;
	enum fake_last_wqe last_wqe;
	enum fake_orphans orphans;
	enum fake_late_post late_post;

	/* Completions. */
	enum fake_wc_fields wc;
	bool grh_is_stale; /* the 20 bytes before an IPv4 header are what they were, or worse */
	int poll_failure;  /* what a poll gives that fails; 0: -1 */
	int poll_loses;	   /* completions that are gone with it */
	bool poll_fails_for_ever;
	bool arming_twice_wakes;

	/* The device. */
	bool gids_have_gaps; /* each address is in the table twice, and not at its front */
	bool disassociates;  /* a removal waits for nobody; what is left of it gives EIO */
};

/* The row of this name, or NULL. */
const struct fake_profile *fake_profile_named(const char *name);
/* What a device of the kind does, unless EVR_FAKE_PROFILE names another row of the kind. */
const struct fake_profile *fake_profile_of(enum fake_kind kind);

#endif
