#include "unit/rs_flood.h"

#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stddef.h>

#include "fake/fake.h"

enum { MANY = 16 };

static struct {
	int fd;
	const struct sockaddr_in *to;
} flood;

static void send_many(void)
{
	static _Thread_local bool is_flooding;
	int i;

	if (is_flooding)
		return;
	is_flooding = true;
	for (i = 0; i < MANY; i++)
		rsendto(flood.fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)flood.to,
			flood.to ? sizeof(*flood.to) : 0);
	is_flooding = false;
}

void rs_flood_from(int fd, const struct sockaddr_in *to)
{
	flood.fd = fd;
	flood.to = to;
	fake_each_call(send_many);
}
