/*
 * Connections that a fault is not for, beside those that it strikes. What is tried runs twice on
 * one loop, first without the fault, then with it: whatever ends was told once, as the fixture
 * sees; each of the others keeps half of its throughput at least; and what is left of objects,
 * descriptors and memory, in the living process, is what was left without it.
 */
#ifndef EVR_CONFORM_BESIDE_H
#define EVR_CONFORM_BESIDE_H

#include "conform/timeouts.h"

enum { VICTIMS_MAX = 500 };

struct trial {
	void (*run)(struct fixture *f, bool strikes);
	bool off_the_wire; /* the others are on a device of their own, and there alone */
	int backlog; /* of the victims' listener; 0: the system's limit */
	/*
	 * How often more at most: a table of all connections grows until it is large enough, and
	 * stays; what is lost grows each time.
	 */
	unsigned again;
};

void beside(const struct trial *trial);

/* Those it is for, since the run began. */
struct victims {
	unsigned made, up, told, cancelled;
	unsigned asked, answered; /* messages, of the connecting ends */
	int error;		  /* the last one's */
};

extern struct victims victims;

/* At the listener of this process across the wire, or at somebody's of that address. */
void victims_connect(struct fixture *f, unsigned n);
void victims_connect_to(struct fixture *f, unsigned n, const char *ip, uint16_t port);
/* Made by somebody else. */
void victims_add(struct endpoint *end);
uint16_t victims_port(void);
void victims_get_stats(struct evrdma_listener_stats *stats);
/* Each that is up sends so many messages, of which it knows each byte when they come back. */
void victims_ask(struct fixture *f, unsigned n, size_t len);
struct endpoint *victim(unsigned i);
/* Whose end is told; the peers' follows from that. */
void victims_close(void);

/* The listener does: it comes back by itself when its device does. */
bool victims_listen(struct fixture *f);
/* As if none had been made. */
void victims_start_over(void);

bool victims_are_up(struct fixture *f);
bool victims_are_answered(struct fixture *f);
/* Each is up or was told that it is not; has all its answers or was told that it has not. */
bool victims_are_settled(struct fixture *f);
bool victims_are_served(struct fixture *f);
/* Nobody is here but the others. */
bool victims_are_gone(struct fixture *f);

/* A request of the victims' listener; NULL: it is accepted. */
extern void (*victims_on_request)(struct fixture *f, struct evrdma_request *request);
struct endpoint *victims_accept(struct fixture *f, struct evrdma_request *request);
/* The memory that they receive into. */
extern size_t victims_recv_bytes;

void beside_cases(Suite *suite);

#endif
