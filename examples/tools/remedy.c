#include "remedy.h"
#include "capability.h"

#include <errno.h>
#include <stddef.h>

static const char no_device[] = "; add an RDMA device and load rdma_ucm (see rdma link)";
static const char no_permission[] =
	"; there is no permission on the devices in /dev/infiniband; ask for it, or be root";
static const char other_address[] =
	"; give addresses that an RDMA device has or leads to (see rdma link, ip address), which "
	"127.0.0.1 and ::1 are not";
static const char other_port[] = "; choose another port with -p";
static const char other_bind[] =
	"; give -b an address of this machine (see ip address), or choose another port with -p";

static const struct {
	int err;
	const char *text;
} remedies[] = {
	{ ECONNREFUSED, "; see whether the server is running there" },
	{ EADDRINUSE, other_port },
	{ EADDRNOTAVAIL, "; give -b an address of this machine (see ip address)" },
	{ EACCES, other_port },
	{ EMFILE, "; allow more open files (ulimit -n)" },
	{ ENFILE, "; the system has too many open files" },
	{ ENOMEM, "; allow more locked memory (ulimit -l)" },
	{ EMSGSIZE, "; make -S smaller" },
	{ ETIMEDOUT, "; see whether the other side is up and the network leads there" },
};

/* A device that is there is not the one that is missing, but none has the address. */
static const char *find_rdma(int err)
{
	switch (err) {
	case ENODEV:
	case ENOENT:
		if (capability_denied())
			return no_permission;
		return capability_device() ? other_address : no_device;
	case ENETUNREACH:
	case EHOSTUNREACH:
		return other_address;
	case EACCES:
	case EPERM:
		return capability_denied() ? no_permission : NULL;
	default:
		return NULL;
	}
}

const char *remedy_find(int err, int plain)
{
	const char *text = plain ? NULL : find_rdma(-err);

	for (size_t i = 0; !text && i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (remedies[i].err == -err)
			text = remedies[i].text;
	return text ? text : "";
}

const char *remedy_find_server(int err, int plain, int bound)
{
	if (err == -EADDRNOTAVAIL)
		return bound ? other_bind : other_port;
	return remedy_find(err, plain);
}

const char *remedy_find_client(int err, int plain)
{
	return remedy_find(err == -EINVAL && !plain ? -ENODEV : err, plain);
}
