/*
 * Runs a tool to its end. The tool is a function that goes as far as it can and then says what it
 * waits for; who waits, and how, is decided here.
 */
#ifndef TOOLS_DRIVE_H
#define TOOLS_DRIVE_H

struct sock;

/* What a step returns: what it waits for (or'ed), or that it is over. */
enum { DRIVE_READ = 1, DRIVE_WRITE = 2, DRIVE_AGAIN = 4, DRIVE_DONE = 0, DRIVE_FAILED = -1 };

enum drive_mode {
	DRIVE_PLAIN, /* the calls themselves wait; a step never has to */
	DRIVE_POLL,  /* poll() or rpoll() waits */
	DRIVE_LOOP,  /* an event_base waits, and the step is a callback on it */
};

struct drive {
	const char *name;
	enum drive_mode mode;
	int (*step)(void *arg);
	struct sock *(*sock)(void *arg); /* the socket that the step waits for */
	void *arg;
};

/* Returns 0 when the step was done, -1 when it failed, which it has said. */
int drive_run(const struct drive *drive);

/*
 * Takes the loop where the number of the socket works in one. Where it does not, which the stock
 * librdmacm's do not, it takes rpoll() and says so.
 */
enum drive_mode drive_choose(const char *name, const struct sock *sock);

#endif
