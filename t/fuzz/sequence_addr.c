/* The addresses of programs, by number. */
#include "fuzz/sequence.h"

#include "fake/fake.h"

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>
#include <string.h>

enum { RING = 4, PORT = 7471 };

/* "gid:" and an address is of AF_IB; "?" is of no family at all. */
static const char *const addrs[] = {
	"0.0.0.0",
	FAKE_ROCE_IP,
	FAKE_ROCE_SILENT_IP,
	FAKE_IWARP_IP,
	FAKE_IB_IP,
	FAKE_NO_RDMA_IP,
	FAKE_NO_ROUTE_IP,
	"127.0.0.1",
	FAKE_ROCE_IP6,
	"::",
	FAKE_IWARP_IP6,
	FAKE_IB_IP6,
	"192.0.2.77",
	"gid:" FAKE_IB_GID,
	"gid:::",
	"?",
	NULL,
};

static const char *const groups[] = {
	"239.1.2.3",
	"239.1.2.4",
	"ff0e::1:2:3",
	"0.0.0.0",
	"gid:ff12:a01b:fe80::1",
	"gid:::",
	"?",
	NULL,
};

static struct sockaddr_storage *next_of_ring(void)
{
	static struct sockaddr_storage ring[RING];
	static unsigned turn;
	struct sockaddr_storage *addr = &ring[turn++ % RING];

	memset(addr, 0, sizeof(*addr));
	return addr;
}

static void put_ib(struct sockaddr_storage *addr, const char *gid, uint16_t port)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)addr;

	sib->sib_family = AF_IB;
	fuzz_check(inet_pton(AF_INET6, gid, &sib->sib_addr) == 1);
	sib->sib_sid = htobe64(((uint64_t)RDMA_PS_TCP << 16) + port);
	sib->sib_sid_mask = htobe64(UINT64_MAX);
}

static struct sockaddr *from_text(const char *text, uint16_t port)
{
	struct sockaddr_storage *addr = next_of_ring();
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

	if (!strncmp(text, "gid:", 4)) {
		put_ib(addr, text + 4, port);
	} else if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	return (struct sockaddr *)addr;
}

struct sockaddr *seq_addr(unsigned index, unsigned port)
{
	const char *text = addrs[index % (sizeof(addrs) / sizeof(addrs[0]))];
	const uint16_t ports[] = { PORT, 0, PORT + 1 };

	return text ? from_text(text, ports[port % 3]) : NULL;
}

struct sockaddr *seq_group(unsigned index)
{
	const char *text = groups[index % (sizeof(groups) / sizeof(groups[0]))];

	return text ? from_text(text, 0) : NULL;
}
