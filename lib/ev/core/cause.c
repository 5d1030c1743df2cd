#include "ev/core/cause.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Where udev puts the devices of verbs and of the CM. */
#define DEVICES "/dev/infiniband"

enum { CAP_IPC_LOCK = 14 };

/* Whoever has CAP_IPC_LOCK is not bound by the limit. */
static bool may_lock_any(void)
{
	static const char label[] = "CapEff:";
	FILE *status = fopen("/proc/thread-self/status", "re");
	unsigned long long caps = 0;
	char line[128];

	if (!status)
		return false;
	while (fgets(line, sizeof(line), status))
		if (!strncmp(line, label, sizeof(label) - 1))
			sscanf(line + sizeof(label) - 1, "%llx", &caps);
	fclose(status);
	return caps >> CAP_IPC_LOCK & 1;
}

static const char *locked_memory(char *buf, size_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY || may_lock_any())
		return NULL;
	snprintf(buf, size, "the limit of locked memory is %llu KiB",
		(unsigned long long)limit.rlim_cur / 1024);
	return buf;
}

static const char *open_files(char *buf, size_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return NULL;
	snprintf(buf, size, "the limit of open files is %llu", (unsigned long long)limit.rlim_cur);
	return buf;
}

static bool is_denied(int dir, const char *name)
{
	return name[0] != '.' && faccessat(dir, name, R_OK | W_OK, AT_EACCESS) && errno == EACCES;
}

/* The first device that the process may not open. */
static const char *permission(char *buf, size_t size)
{
	DIR *dir = opendir(DEVICES);
	const struct dirent *entry;

	if (!dir)
		return NULL;
	while ((entry = readdir(dir)))
		if (is_denied(dirfd(dir), entry->d_name))
			break;
	if (entry)
		snprintf(buf, size, "no permission on %s/%.32s", DEVICES, entry->d_name);
	closedir(dir);
	return entry ? buf : NULL;
}

/* Devices pin memory for queues as well as for buffers. */
static bool pins_memory(enum evrdma_step step)
{
	return step == EVRDMA_STEP_DEVICE || step == EVRDMA_STEP_TRANSFER;
}

static const struct {
	enum evrdma_step step;
	int err; /* 0: any */
	const char *text;
} advice[] = {
	{ EVRDMA_STEP_ADDR, ENODEV,
		"no RDMA device is on the interface that leads there, see rdma link" },
	/* So iWARP says it, and RoCE. */
	{ EVRDMA_STEP_ADDR, EINVAL,
		"if it is 127.0.0.1 or ::1, use an address of the RDMA device instead" },
	{ EVRDMA_STEP_ROUTE, ENODEV,
		"if it is 127.0.0.1 or ::1, use an address of the RDMA device instead" },
	{ EVRDMA_STEP_DEVICE, EIO,
		"the driver gives no reason; siw: set cq_entries over 16384, see evrdma(7)" },
	{ EVRDMA_STEP_ACCEPT, ECONNRESET, "the peer gave up before it was answered" },
	{ EVRDMA_STEP_DELIVER, ETIMEDOUT,
		"the peer has not acknowledged all that was sent within drain_timeout_ms" },
	{ EVRDMA_STEP_DISCONNECT, ETIMEDOUT,
		"every send is done, only the peer's answer is late" },
	{ EVRDMA_STEP_CHANNEL, 0, "close the base and what is on it, and make another one" },
};

static const char *find_advice(int err, enum evrdma_step step)
{
	size_t i;

	for (i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
		if (advice[i].step == step && (!advice[i].err || advice[i].err == err))
			return advice[i].text;
	return NULL;
}

static const char *find_limit(int err, enum evrdma_step step, char *buf, size_t size)
{
	switch (err) {
	case EMFILE:
		return open_files(buf, size);
	case ENOMEM:
		return pins_memory(step) ? locked_memory(buf, size) : NULL;
	case EPERM:
		/* The kernel's word for a limit of 0. */
		return pins_memory(step) ? locked_memory(buf, size) : permission(buf, size);
	case EACCES:
		return permission(buf, size);
	default:
		return NULL;
	}
}

const char *evr_cause_text(int err, enum evrdma_step step, char *buf, size_t size)
{
	int saved = errno;
	const char *text = find_advice(err, step);

	if (!text)
		text = find_limit(err, step, buf, size);
	errno = saved;
	return text;
}
