/*
 * A machine of the real kernel: two soft devices, a wire between them with weather of its own, and
 * a peer in another process. device.sh makes them. The time is virtual: what nobody waits through
 * takes none, and a call that takes some has slept.
 */
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schedule/resources.h"
#include "schedule/schedule.h"
#include "schedule/stranger.h"
#include "schedule/wire.h"

enum {
	US_PER_S = 1000000,
	/*
	 * Whoever keeps the loop for so long is seen. rxe keeps who destroys a QP until the
	 * network has let go of its frames, which wait three seconds for a neighbour who does not
	 * answer; siw makes its TCP connection inside the connect, see device.sh, for as long. A
	 * turn has at most one such call of each base, and one of the schedule's own.
	 */
	HELD_US = 300000,
	HELD_BY_KERNEL_US = (OWNERS + 1) * 3200000,
	REMOVAL_US = 20 * US_PER_S,    /* for a device that everybody has let go of */
	AFTERMATH_US = 200 * US_PER_S, /* until the kernel has given up whatever it tried */
	END_US = 60 * US_PER_S,
};

static const char *const ips[WIRE_ENDS] = { "10.77.0.1", "10.77.0.2" };
static const char *const dev_vars[WIRE_ENDS] = { "EVR_DEV_A", "EVR_DEV_B" };
static const char *const netdev_vars[WIRE_ENDS] = { "EVR_NETDEV_A", "EVR_NETDEV_B" };

static struct weather weather;
static pid_t removers[WIRE_ENDS];
static uint64_t counts_before[RESOURCES];

static const char *env(const char *name)
{
	const char *value = getenv(name);

	MUST(value, "%s is not set: run t/schedule/device.sh", name);
	return value;
}

/* --- the weather ----------------------------------------------------------------------------- */

static void set_weather(struct schedule *s)
{
	trace(s, "wire: %u per mille lost, %u repeated, %u + %u us, messages 0x%x lost%s%s",
		weather.loss, weather.repeat, weather.delay_us, weather.jitter_us, weather.lost,
		weather.down[WIRE_A] ? ", A down" : "", weather.down[WIRE_B] ? ", B down" : "");
	wire_set(&weather);
	weather.seed = 0;
}

static void change_weather(struct schedule *s)
{
	static const uint32_t mille[] = { 0, 0, 10, 100 }, us[] = { 0, 0, 200, 5000, 40000 };

	if (!s->profile.holds)
		return;
	weather.loss = RANDOM_OF(&s->random, mille);
	weather.repeat = RANDOM_OF(&s->random, mille);
	weather.delay_us = RANDOM_OF(&s->random, us);
	weather.jitter_us = RANDOM_OF(&s->random, us);
	set_weather(s);
}

static void lose_messages(struct schedule *s)
{
	if (!s->profile.holds)
		return;
	weather.lost ^= 1u << random_below(&s->random, WIRE_MESSAGES);
	set_weather(s);
}

static void cut(struct schedule *s)
{
	if (!s->profile.by_hand)
		return;
	weather.down[random_below(&s->random, WIRE_ENDS)] ^= true;
	set_weather(s);
}

static void clear_up(struct schedule *s)
{
	weather = (struct weather){ 0 };
	set_weather(s);
}

/* --- devices --------------------------------------------------------------------------------- */

static bool is_there(enum wire_end end)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", env(dev_vars[end]));
	return !access(path, F_OK);
}

static pid_t run_rdma(const char *const argv[])
{
	pid_t pid = fork();

	if (!pid) {
		execvp("rdma", (char *const *)argv);
		_exit(127);
	}
	return pid;
}

static void remove_device(enum wire_end end)
{
	const char *const argv[] = { "rdma", "link", "delete", env(dev_vars[end]), NULL };

	removers[end] = run_rdma(argv);
}

/* It is over when all have let go of the device. */
static bool removal_is_over(enum wire_end end)
{
	int status;

	if (removers[end] && waitpid(removers[end], &status, WNOHANG) == removers[end]) {
		removers[end] = 0;
		MUST(!status, "a device cannot be removed");
	}
	return !removers[end];
}

static void add_device(enum wire_end end)
{
	const char *const argv[] = { "rdma", "link", "add", env(dev_vars[end]), "type",
		env("EVR_KIND"), "netdev", env(netdev_vars[end]), NULL };
	int status;

	waitpid(run_rdma(argv), &status, 0);
	MUST(!status, "a device cannot be made");
}

static void pull(struct schedule *s)
{
	enum wire_end end = (enum wire_end)random_below(&s->random, WIRE_ENDS);

	if (!s->profile.pulls || !removal_is_over(end) || !is_there(end))
		return;
	trace(s, "device %s is removed", env(dev_vars[end]));
	s->troubled = s->pulled = true;
	s->pulls++;
	remove_device(end);
}

static void plug_in(struct schedule *s)
{
	enum wire_end end = (enum wire_end)random_below(&s->random, WIRE_ENDS);

	if (!removal_is_over(end) || is_there(end))
		return;
	trace(s, "device %s is back", env(dev_vars[end]));
	add_device(end);
}

/* The CM sees that a device is to go when it looks. */
static void wait_for_removal(enum wire_end end)
{
	uint64_t since = clock_now_us();

	while (!removal_is_over(end)) {
		MUST(clock_now_us() - since < REMOVAL_US,
			"nobody has device %s, and it does not go", env(dev_vars[end]));
		rdma_free_devices(rdma_get_devices(NULL));
		usleep(1000);
	}
	if (!is_there(end))
		add_device(end);
}

/* --- the peer in another process ------------------------------------------------------------- */

static void call(struct schedule *s)
{
	struct port *port = object_pick(s, LISTENER, ANY_STATE);

	if (!s->stranger || !port || port->for_dgrams)
		return;
	trace(s, "stranger: connects to listener %u", port->object.number);
	stranger_call(s->ip, port->number);
}

static void stop(struct schedule *s)
{
	bool on = random_once_in(&s->random, 2);

	if (!s->stranger)
		return;
	trace(s, "stranger: %s", on ? "is stopped" : "goes on");
	stranger_signal(on ? SIGSTOP : SIGCONT);
}

static void kill_stranger(struct schedule *s)
{
	if (!s->stranger)
		return;
	trace(s, "stranger: is killed");
	stranger_signal(SIGKILL);
}

/* --- time ------------------------------------------------------------------------------------ */

static void check_held(void)
{
	uint64_t us = clock_held_us();

	if (us > HELD_US)
		printf("# the loop was kept for %llu us\n", (unsigned long long)us);
	MUST(us < HELD_BY_KERNEL_US, "the loop was kept for %llu us", (unsigned long long)us);
}

static void turn(struct schedule *s)
{
	unsigned n = 1 + random_below(&s->random, 4);

	while (n-- && schedule_turn(s))
		;
	check_held();
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
}

static void pass(struct schedule *s, uint64_t us)
{
	const struct timeval tv = { .tv_sec = (time_t)(us / US_PER_S),
		.tv_usec = (suseconds_t)(us % US_PER_S) };
	struct event *timer = evtimer_new(s->loop, on_time, NULL);

	evtimer_add(timer, &tv);
	while (evtimer_pending(timer, NULL)) {
		schedule_skip(s);
		check_held();
	}
	event_free(timer);
}

static void let_pass(struct schedule *s)
{
	static const unsigned us[] = { 100, 100, 1000, 1000, 5000, 20000, 60000, 1100000,
		11000000 };
	unsigned long_us = RANDOM_OF(&s->random, us);

	trace(s, "time: %u us", long_us);
	pass(s, long_us);
}

static void skip(struct schedule *s)
{
	trace(s, "time: to the next event");
	schedule_skip(s);
	check_held();
}

static const struct action actions[] = {
	{ "turn", 60, turn },
	{ "skip", 30, skip },
	{ "wait", 20, let_pass },
	{ "weather", 4, change_weather },
	{ "lose messages", 4, lose_messages },
	{ "clear up", 4, clear_up },
	{ "cut", 2, cut },
	{ "pull", 2, pull },
	{ "plug in", 4, plug_in },
	{ "call", 4, call },
	{ "stop", 3, stop },
	{ "kill", 1, kill_stranger },
	{ 0 },
};

/* --- beginning and end ----------------------------------------------------------------------- */

static void set_up(void)
{
	static const char *const ends[WIRE_ENDS] = { "wire_a", "wire_b" };
	int ret = wire_start("wire", ends), end;

	for (end = 0; !ret && end < WIRE_ENDS; end++)
		ret = wire_whole_frames(env(netdev_vars[end]));
	MUST(!ret, "no wire: %s", strerror(-ret));
}

/* What a schedule that went wrong has left. */
static void repair(void)
{
	int end;

	for (end = 0; end < WIRE_ENDS; end++)
		if (!is_there((enum wire_end)end))
			add_device((enum wire_end)end);
}

static void begin(struct schedule *s)
{
	enum wire_end end = (enum wire_end)random_below(&s->random, WIRE_ENDS);

	s->ip = ips[end];
	s->is_iwarp = !strcmp(env("EVR_KIND"), "siw");
	s->has_srqs = true;
	s->has_atomics = s->has_immediates = s->has_dgrams = !s->is_iwarp;
	s->profile.faults = s->profile.injects = s->profile.async = false;
	repair();
	MUST(!resources_count(counts_before), "the kernel does not count its objects");
	weather = (struct weather){ .seed = random_next(&s->random) | 1 };
	set_weather(s);
	s->stranger_ip = ips[!end];
	if (random_once_in(&s->random, 3))
		s->stranger = stranger_start(s->stranger_ip);
}

static void answer(struct schedule *s)
{
	clear_up(s);
	stranger_signal(SIGCONT);
}

static void check_counts(void)
{
	uint64_t counts[RESOURCES];
	int i;

	MUST(!resources_count(counts), "the kernel does not count its objects");
	for (i = 0; i < RESOURCES; i++)
		MUST(i == RESOURCE_CTX || counts[i] == counts_before[i],
			"%s: there were %llu, there are %llu", resource_names[i],
			(unsigned long long)counts_before[i], (unsigned long long)counts[i]);
}

static void end(void)
{
	check_held();
	stranger_end();
	wait_for_removal(WIRE_A);
	wait_for_removal(WIRE_B);
	check_counts();
}

const struct machine machine = {
	.silent_ip = "10.77.0.9",
	.no_rdma_ip = "10.78.0.2",
	.no_route_ip = "203.0.113.9",
	.set_up = set_up,
	.begin = begin,
	.answer = answer,
	.end = end,
	.fds_kept = 2 * WIRE_ENDS,
	.actions = actions,
};
