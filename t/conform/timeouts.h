/*
 * What the kernel and the library give up, with what error, and when: on the two devices of
 * timeouts.sh, with a wire between them that loses what it is told to. The time is virtual, so that
 * minutes of waiting take none, and instant: whoever keeps the loop has slept.
 */
#ifndef EVR_CONFORM_TIMEOUTS_H
#define EVR_CONFORM_TIMEOUTS_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include "conform/fixture.h"
#include "schedule/wire.h"

enum {
	SLACK_MS = 20,	    /* of the library's own timers */
	DRAIN_MS = 1000,    /* drain_timeout_ms */
	CONNECT_MS = 10000, /* connect_timeout_ms */
};

/* What an endpoint was told of its end, and when, since begin(). */
struct end {
	unsigned told;
	int error; /* 0: DISCONNECTED */
	uint64_t ms, closed_ms;
};

extern struct end client_end, server_end;

/* A fixture that notes how its connections end, and closes none. */
struct fixture *noting_fixture(void);
/* The same, but for the closing. */
struct fixture *closing_fixture(void);
/* Closes what is open, within drain_timeout_ms; the loop was never kept since begin(). */
void finish(struct fixture *f);
/* The base, of which nothing is left but ids that linger; the loop is not kept meanwhile. */
void close_base(struct fixture *f, uint64_t most_ms);

/* The weather: nothing is lost any more, or these messages are. */
void calm(void);
void lose(enum wire_message message);
extern const struct weather no_frame, no_carrier;

/* From now on time is measured. */
void begin(void);
uint64_t passed_ms(void);
/* As fixture_run_until(), but the loop wakes for nothing else, and who holds it is seen. */
void run_until(struct fixture *f, bool (*condition)(struct fixture *));
void run_for(struct fixture *f, unsigned s);
void close_client(struct fixture *f);

bool client_is_told(struct fixture *f);
bool both_are_told(struct fixture *f);
bool client_is_up(struct fixture *f);
bool both_are_up(struct fixture *f);
bool nobody_is_told(void);

/* That the library's timer of so many ms ended it. */
void assert_library_took(uint64_t ms, uint64_t timer_ms);
/*
 * That so many ms of the kernel's timers ended it. Those are rounded up to a tick, and where they
 * are longer than 63 of them by an eighth at most.
 */
void assert_kernel_took(uint64_t ms, uint64_t timers_ms);
void assert_told(const struct end *end, int error);

TCase *timeouts_connect_case(void);
TCase *timeouts_iwarp_connect_case(void);
TCase *timeouts_handshake_case(void);
TCase *timeouts_cut_case(void);
TCase *timeouts_iwarp_cut_case(void);
TCase *timeouts_buffer_case(void);
TCase *timeouts_iwarp_buffer_case(void);
TCase *timeouts_silence_case(void);
TCase *timeouts_close_case(void);
TCase *timeouts_link_case(void);
TCase *timeouts_groups_case(void);
TCase *timeouts_forged_case(void);
TCase *timeouts_hostile_case(void);
TCase *timeouts_again_case(void);
TCase *timeouts_stale_case(void);
TCase *new_case(const char *name);

#endif
