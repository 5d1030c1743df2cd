/* The address of an interface (-B). */
#include "cmtime.h"

#include <errno.h>
#include <string.h>
#include <ifaddrs.h>
#include <netinet/in.h>

static const struct sockaddr *first_of(
	const struct ifaddrs *list, const char *interface, sa_family_t family)
{
	for (; list; list = list->ifa_next)
		if (list->ifa_addr && list->ifa_addr->sa_family == family &&
			!strcmp(list->ifa_name, interface))
			return list->ifa_addr;
	return NULL;
}

/* A client connects from any port. */
static void use(struct cmtime *test, const struct sockaddr *addr)
{
	struct sockaddr_storage *local = &test->ends.local.addr;
	uint16_t port = test->options.server ? 0 : (uint16_t)test->options.port;

	memset(local, 0, sizeof(*local));
	if (addr->sa_family == AF_INET) {
		memcpy(local, addr, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)local)->sin_port = htons(port);
	} else {
		memcpy(local, addr, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)local)->sin6_port = htons(port);
	}
}

/* The family is the server's address's; a server itself has none yet, and takes IPv4 first. */
static const struct sockaddr *choose(const struct cmtime *test, const struct ifaddrs *list)
{
	const char *interface = test->options.interface;
	const struct sockaddr *addr;

	if (test->options.server)
		return first_of(list, interface, ends_remote(&test->ends)->sa_family);
	addr = first_of(list, interface, AF_INET);
	return addr ? addr : first_of(list, interface, AF_INET6);
}

int cmtime_use_interface(struct cmtime *test)
{
	const struct sockaddr *addr;
	struct ifaddrs *list;

	if (getifaddrs(&list)) {
		tool_fail(&test->tool, "cannot list the addresses: %s", strerror(errno));
		return -1;
	}
	addr = choose(test, list);
	if (addr)
		use(test, addr);
	else
		tool_fail(&test->tool,
			"-B %s: no such interface, or it has no address of the family; see ip "
			"address",
			test->options.interface);
	freeifaddrs(list);
	test->ends.bind = test->options.interface;
	return addr ? 0 : -1;
}
