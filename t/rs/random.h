/*
 * Random schedules of rsockets. Several pairs are connected, a few threads at each end do what any
 * user may do, and one watches them.
 *
 * Who watches knows what went which way, and so what each call may give and who may wait. When all
 * sleep it brings about what somebody waits for, or ends something, and whoever waits for that has
 * to wake up. That is looked at when nothing moves any more, however long that takes to be so: no
 * call is too slow, but one that sleeps on for HANG_S, with what it waits for there, hangs.
 */
#ifndef RS_RANDOM_H
#define RS_RANDOM_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fake/fake.h"
#include "schedule/random.h"

enum {
	RANDOM_PAIRS = 3,
	RANDOM_ENDS = 2 * RANDOM_PAIRS,
	RANDOM_CROWD = 3, /* users of one end */
	RANDOM_USERS = RANDOM_ENDS * RANDOM_CROWD,
	RANDOM_PIECE = 40000, /* what is sent and received at once, at most */
	HANG_S = 15,
};

/* What goes from one end to the other. Each byte says where it is in it. */
struct random_flow {
	uint64_t sent;	  /* what calls said has gone */
	uint64_t offered; /* and what a call may have sent by now */
	uint64_t taken;
	bool shut;  /* no more is sent */
	bool reset; /* and what is not received by now may be lost */
};

struct random_end {
	unsigned number;
	int fd, copy; /* made by dup(2) */
	int set;      /* of epoll's, which its users share, or -1 */
	short set_events;
	bool in_repoll; /* and made by repoll_create(): so its number shows what there is,
			   nonblocking or not */
	struct random_end *peer;
	struct random_flow out;
	bool nonblock;
	unsigned modes;	    /* how often that was changed */
	unsigned relying;   /* calls that rely on that, */
	unsigned by_number; /* and those in poll(2) and its like */
	unsigned by_copy;
	bool receiving, sending; /* one at a time, so that who gets which byte is known */
	bool closed;
	bool was_shut; /* for sending, when it was closed */
	bool shut_all; /* by rshutdown() in both directions */
	bool gone;     /* with its device */
	bool told;     /* of a reset */
	bool ended;    /* its receiver was told that nothing more comes */
};

/* What a user waits for, any of them. */
enum { FOR_BYTES = 1, FOR_ROOM = 2 };

struct random_user {
	struct random_schedule *schedule;
	struct random_end *end;
	struct random random;
	unsigned left; /* things to do */
	pthread_t thread;
	pid_t tid;
	struct random_user *other; /* who comes between what it does, or NULL */
	int edges[2];		   /* epoll sets, by edge: of bytes, of room; or -1 */
	uint8_t bytes[RANDOM_PIECE];
	/* What it is doing. */
	const char *call;
	int wants;
	uint64_t want; /* so many bytes */
	bool in_call;  /* which moves bytes itself: others have to wait for it */
	bool hung_up;  /* says rpoll() */
	uint64_t turns;
	bool over;
	/* When it was given room, and what had gone by then; 0: never. */
	uint64_t given_turn, given_sent;
};

struct random_schedule {
	uint64_t seed;
	enum fake_kind kind; /* of the device that all of it is on */
	bool held;	     /* what is sent does not arrive yet */
	bool alone; /* one user, of all ends, blocking, who never waits: the seed says all */
	struct random random;
	pthread_mutex_t lock;
	unsigned num_ends, num_users;
	struct random_end ends[RANDOM_ENDS];
	struct random_user users[RANDOM_USERS];
	uint64_t digest; /* of all that its calls gave */
	bool traced;	 /* they are printed */
};

/* random.c: connects, watches, ends, and looks what is left. Returns the digest of what users did.
 */
uint64_t random_run(uint64_t seed, bool alone);
/* A thread of this process. */
bool random_sleeps(pid_t tid);

/* random_model.c: what may be. All with the lock. */
/* Ends the test: says what is wrong, which seed it was, and what each user was doing. */
void random_wrong(const struct random_schedule *s, const struct random_end *end, const char *what)
	__attribute__((noreturn));
void random_fill(const struct random_end *from, uint8_t *bytes, size_t len);
/* One call to receive: what it was to do, and what it gave. */
struct random_receipt {
	unsigned modes; /* of the end, when it began */
	bool may_wait, all, peek;
	bool ready; /* there were bytes before it began, */
	bool told;  /* and of a reset */
	size_t len;
	ssize_t got;
	int error;
};
void random_received(const struct random_schedule *s, struct random_end *end, const uint8_t *bytes,
	const struct random_receipt *receipt);
struct random_sending {
	unsigned modes;
	bool may_wait;
	size_t len;
	ssize_t sent;
	int error;
};
void random_sent(
	const struct random_schedule *s, struct random_end *end, const struct random_sending *sent);
/* Bytes, or their end, are there for who receives here. */
bool random_has(const struct random_end *end, uint64_t bytes);
/* Both directions have ended; that it was closed says its user's call, and nothing else. */
bool random_may_hang_up(const struct random_end *end);
/* It has ended, so that nobody waits for room. */
bool random_is_over(const struct random_end *end);

/* random_user.c */
void *random_user_run(void *user);
/* Without waiting: how much went, or was there. */
size_t random_push(struct random_user *user, struct random_end *end, size_t len);
size_t random_drain(struct random_user *user, struct random_end *end);
void random_peek(struct random_user *user, struct random_end *end);
/* Not to blocking while somebody relies on that it is not. */
void random_set_mode(struct random_user *user, struct random_end *end, bool nonblock);
/* Unless it is closed, or somebody waits by its number. linger_s: 0 resets it, less is as it is. */
bool random_close(struct random_schedule *s, struct random_end *end, int linger_s);
/* The same in two steps: whether it may be; and then. */
bool random_begin_to_close(struct random_schedule *s, struct random_end *end, int linger_s);
void random_finish(struct random_schedule *s, struct random_end *end, int linger_s);

/* random_meddle.c: beside that user. */
void random_meddle(void *user);

/* random_places.c: from now on somebody comes between what this thread does, often. run: NULL: not
 * any more. */
void random_come_often(uint64_t seed, void (*run)(void *arg), void *arg);
/* Once, at that place of this thread from now on, or at once; whether it did, and not before it
 * slept. */
void random_come_at(unsigned place, void (*run)(void));
void random_come_now(void);
bool random_has_come(bool *asleep);
/*
 * When this thread closes it, the number becomes that of a file that never waits: who was about to
 * begin a call with it shall not meet another's.
 */
void random_keep_number(int fd);

/* random_dgrams.c: one schedule of datagrams. */
void random_dgrams(uint64_t seed);

/* random_between.c: all calls, with somebody between. end: looks what is left, after each. */
void random_between(void (*end)(void));

/* random_connect.c: a listener for all of them, and its backlog. */
void random_connect(struct random_schedule *s);

#endif
