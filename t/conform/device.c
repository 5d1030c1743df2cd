/* The conformance suite on a device of the machine's, or of the guest's: device.sh starts it. */
#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/memlock.h"
#include "conform/objects.h"
#include "conform/suite.h"
#include "conform/traced.h"
#include "conform/fixture.h"
#include "util/clock.h"

static pid_t remover = -1;

/* Locked by whoever removes the device, past the end of the test that asked for it. */
static char removal_lock[] = "/tmp/evrdma-removal-XXXXXX";

/* The lock is given up with the descriptor, which outlives an exec. */
static int lock_removal(void)
{
	int fd = open(removal_lock, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	return fd;
}

static const char *env(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "%s is not set: run t/conform/device.sh\n", name);
		exit(2);
	}
	return value;
}

static void remove_device(void)
{
	remover = fork();
	ck_assert_int_ge(remover, 0);
	if (!remover) {
		setpgid(0, 0);
		lock_removal();
		execlp("rdma", "rdma", "link", "delete", env("EVR_DEV"), NULL);
		_exit(127);
	}
}

static bool device_is_removed(void)
{
	int status;

	if (remover < 0)
		return true;
	if (waitpid(remover, &status, WNOHANG) != remover)
		return false;
	remover = -1;
	ck_assert_int_eq(status, 0);
	return true;
}

static void add_device(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rdma link add %s type %s netdev %s", env("EVR_DEV"),
		env("EVR_KIND"), env("EVR_NETDEV"));
	ck_assert_int_eq(system(command), 0);
}

/*
 * Each test is a process of its own, and the stock CM holds the device while it lives: a removal
 * may only now come to its end.
 */
static void restore_device(void)
{
	char path[PATH_MAX];

	close(lock_removal());
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", env("EVR_DEV"));
	if (access(path, F_OK))
		add_device();
}

static void start(void)
{
	restore_device();
	if (traced())
		traced_start();
}

static void count(int counts[TESTBED_COUNTS])
{
	memset(counts, 0, TESTBED_COUNTS * sizeof(*counts));
	/* It waits for the kernel, which is not the library's doing. */
	if (!traced())
		ck_assert_int_eq(objects_count(counts), 0);
}

struct testbed testbed = {
	.start = start,
	.remove_device = remove_device,
	.device_is_removed = device_is_removed,
	.add_device = add_device,
	.count = count,
	.now_us = evr_clock_now_us,
};

int main(void)
{
	static TCase *(*const more[])(void) = { memlock_case };
	static TCase *(*const more_traced[])(void) = { traced_case };
	int status;

	testbed.ip = env("EVR_IP4");
	testbed.ip6 = env("EVR_IP6");
	testbed.is_iwarp = !strcmp(env("EVR_KIND"), "siw");
	if (testbed.is_iwarp)
		testbed.lacks =
			TESTBED_DATAGRAMS | TESTBED_GROUPS | TESTBED_ATOMICS | TESTBED_IMMEDIATES;
	testbed.most_reads = 128;
	testbed.own_core = !strcmp(env("EVR_CORE"), "ours");
	close(mkstemp(removal_lock));
	if (traced())
		testbed.watch = traced_watch;
	status = run_suite("device", traced() ? more_traced : more, 1);
	unlink(removal_lock);
	return status;
}
