/* The addresses of a tool on the CM: where a server listens, or what a client connects from and to.
 */
#ifndef TOOLS_ENDS_H
#define TOOLS_ENDS_H

#include <sys/socket.h>

#include "address.h"
#include "common.h"

/* Fill everything above the line, and let it live as long as the tool. */
struct ends {
	struct tool *tool;
	const char *server; /* NULL: be the server */
	const char *bind;   /* NULL: any; the address to listen on, or to connect from */
	enum address_format format;
	int port_space;
	long port;
	long timeout_s;
	address_lookup_cb cb; /* they are found */
	void *arg;
	/* -- */
	struct address_lookup local;
	struct address_lookup remote;
};

/* Ends in cb, which may come at once, or in tool_fail(). */
void ends_find(struct ends *ends);

/* What was found; ends_local() is NULL for a client that is bound to nothing. */
const struct sockaddr *ends_local(const struct ends *ends);
const struct sockaddr *ends_remote(const struct ends *ends);

/* How messages on stderr call the other side. */
const char *ends_peer_text(const struct ends *ends);

/* tool_fail_error() with what is known of connections. With tell, the tool goes on. */
void ends_fail_error(const struct ends *ends, const struct evrdma_error *error);
void ends_fail_call(const struct ends *ends, enum evrdma_step step, int err);
void ends_tell_error(const struct ends *ends, const struct evrdma_error *error);
void ends_tell_call(const struct ends *ends, enum evrdma_step step, int err);

/* As tool_error_text() does. */
const char *ends_error_text(char *text, const struct evrdma_error *error);

/* tool_fail() about an address that cannot be listened on; err is a positive errno. */
void ends_fail_listen(const struct ends *ends, int err);

#endif
