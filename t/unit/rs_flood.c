#include "unit/rs_flood.h"

#include <rdma/rsocket.h>
#include <stddef.h>

#include "fake/fake.h"

enum { MANY = 16 };

static struct {
	int fd;
	const struct sockaddr_in *to;
} flood;

static void send_many(void)
{
	int i;

	for (i = 0; i < MANY; i++)
		rsendto(flood.fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)flood.to,
			flood.to ? sizeof(*flood.to) : 0);
}

void rs_flood_from(int fd, const struct sockaddr_in *to)
{
	flood.fd = fd;
	flood.to = to;
	fake_meanwhile(send_many);
}
