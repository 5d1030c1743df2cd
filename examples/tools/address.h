/* Addresses from the command line: numeric ones at once, names through evdns. */
#ifndef TOOLS_ADDRESS_H
#define TOOLS_ADDRESS_H

#include <stdint.h>
#include <sys/socket.h>

struct event;
struct evdns_base;
struct evdns_getaddrinfo_request;
struct tool;

/* What -f says that an address is. */
enum address_format { ADDRESS_NAME, ADDRESS_IP, ADDRESS_IPV6, ADDRESS_GID };

/* Returns the format that text names (by its first letters, as ever), or -1. */
int address_format(const char *text);

/*
 * Reads a numeric address. A GID becomes an AF_IB address whose service is the port in the port
 * space. Returns 0, or -EINVAL for what is not numeric or not of the format.
 */
int address_parse(struct sockaddr_storage *addr, enum address_format format, const char *text,
	int port_space, uint16_t port);

/* The address as text, "address port n", in a buffer of ADDRESS_TEXT_MAX bytes. */
#define ADDRESS_TEXT_MAX 80
const char *address_text(char *text, const struct sockaddr *addr);

/* The resolver, made when first asked for. NULL after a tool_fail(). */
struct evdns_base *address_resolver(struct tool *tool);

/* The address was found: it is in the look-up. */
typedef void (*address_lookup_cb)(void *arg);

/* Looks an address up. Fill everything above the line, and let it live until it is over. */
struct address_lookup {
	struct tool *tool;
	const char *text;
	enum address_format format;
	int family; /* AF_UNSPEC: any */
	int port_space;
	uint16_t port;
	long timeout_s;
	address_lookup_cb cb;
	void *arg;
	/* -- */
	struct sockaddr_storage addr;
	struct evdns_getaddrinfo_request *request;
	struct event *timer;
	int busy;
	int timed_out;
};

/* Ends in cb, which may come at once, or in tool_fail(). */
void address_lookup_start(struct address_lookup *lookup);

/* Gives a look-up up that is under way; its cb will not come. */
void address_lookup_cancel(struct address_lookup *lookup);

#endif
