#define _GNU_SOURCE
#include "schedule/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "schedule/clock.h"
#include "schedule/random.h"

enum { FRAME_MAX = 2048, US_PER_MS = 1000, MILLE = 1000 };

struct frame {
	TAILQ_ENTRY(frame) link;
	uint64_t due_us;
	enum wire_end to;
	size_t len;
	unsigned char bytes[FRAME_MAX];
};

static TAILQ_HEAD(queue, frame) frames = TAILQ_HEAD_INITIALIZER(
	frames); /* the next one due first */
static struct weather weather;
static struct random dice;
static int ends[WIRE_ENDS], control = -1;
static char names[WIRE_ENDS][IF_NAMESIZE];

/* --- what a frame is ------------------------------------------------------------------------- */

/*
 * The attribute of a management datagram of the CM, or 0. InfiniBand Architecture Specification,
 * volume 1, 9.2 (base transport header), 9.3.3 (datagram extended header), 13.4.3 (common header of
 * management datagrams); over UDP as in its annex A17.
 */
static unsigned cm_attribute(const unsigned char *bytes, size_t len)
{
	enum {
		IP = ETH_HLEN,
		UDP = IP + 20,
		BTH = UDP + 8,
		MAD = BTH + 12 + 8,
		ATTRIBUTE = MAD + 16
	};
	enum { ROCE_PORT = 4791, UD_SEND_ONLY = 0x64, GSI_QP = 1, CM_CLASS = 7 };

	if (len < ATTRIBUTE + 2 || bytes[12] != 8 || bytes[13] || bytes[IP + 9] != IPPROTO_UDP ||
		(bytes[UDP + 2] << 8 | bytes[UDP + 3]) != ROCE_PORT || bytes[BTH] != UD_SEND_ONLY)
		return 0;
	if ((bytes[BTH + 5] << 16 | bytes[BTH + 6] << 8 | bytes[BTH + 7]) != GSI_QP ||
		bytes[MAD + 1] != CM_CLASS)
		return 0;
	return (unsigned)(bytes[ATTRIBUTE] << 8 | bytes[ATTRIBUTE + 1]);
}

static bool is_lost(const unsigned char *bytes, size_t len)
{
	enum { FIRST_ATTRIBUTE = 0x10 };
	unsigned message = cm_attribute(bytes, len) - FIRST_ATTRIBUTE;

	if (message < WIRE_MESSAGES && weather.lost & 1u << message)
		return true;
	return weather.loss && random_below(&dice, MILLE) < weather.loss;
}

/* --- the frames on the way ------------------------------------------------------------------- */

static void put(struct frame *frame)
{
	struct frame *before;

	TAILQ_FOREACH_REVERSE(before, &frames, queue, link)
	if (before->due_us <= frame->due_us)
		break;
	if (before)
		TAILQ_INSERT_AFTER(&frames, before, frame, link);
	else
		TAILQ_INSERT_HEAD(&frames, frame, link);
}

static void send_on(enum wire_end to, const unsigned char *bytes, size_t len)
{
	struct frame *frame = malloc(sizeof(*frame));

	if (!frame)
		return;
	frame->to = to;
	frame->due_us = clock_real_us() + weather.delay_us;
	if (weather.jitter_us)
		frame->due_us += random_below(&dice, weather.jitter_us);
	frame->len = len;
	memcpy(frame->bytes, bytes, len);
	put(frame);
}

static void take(enum wire_end from)
{
	unsigned char bytes[FRAME_MAX];
	ssize_t len;

	while ((len = recv(ends[from], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		if (is_lost(bytes, (size_t)len))
			continue;
		send_on(!from, bytes, (size_t)len);
		if (weather.repeat && random_below(&dice, MILLE) < weather.repeat)
			send_on(!from, bytes, (size_t)len);
	}
}

/* What an end without a carrier does not take is lost. */
static void deliver(void)
{
	uint64_t now = clock_real_us();
	struct frame *frame;
	ssize_t done;

	while ((frame = TAILQ_FIRST(&frames)) && frame->due_us <= now) {
		TAILQ_REMOVE(&frames, frame, link);
		done = send(ends[frame->to], frame->bytes, frame->len, 0);
		(void)done;
		free(frame);
	}
}

static int next_ms(void)
{
	struct frame *frame = TAILQ_FIRST(&frames);
	uint64_t now = clock_real_us();

	if (!frame)
		return -1;
	return frame->due_us <= now ? 0 : (int)((frame->due_us - now + US_PER_MS - 1) / US_PER_MS);
}

/* --- orders ---------------------------------------------------------------------------------- */

static void set_carrier(enum wire_end end, bool down)
{
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, names[end], IF_NAMESIZE);
	ioctl(ends[end], SIOCGIFFLAGS, &ifr);
	ifr.ifr_flags = (short)(down ? ifr.ifr_flags & ~IFF_UP : ifr.ifr_flags | IFF_UP);
	ioctl(ends[end], SIOCSIFFLAGS, &ifr);
}

static bool obey(void)
{
	int end;

	if (recv(control, &weather, sizeof(weather), 0) != sizeof(weather))
		return false;
	if (weather.seed)
		dice.state = weather.seed;
	for (end = 0; end < WIRE_ENDS; end++)
		set_carrier((enum wire_end)end, weather.down[end]);
	return send(control, "", 1, 0) == 1;
}

static _Noreturn void run(void)
{
	struct pollfd fds[] = { { .fd = control, .events = POLLIN },
		{ .fd = ends[WIRE_A], .events = POLLIN },
		{ .fd = ends[WIRE_B], .events = POLLIN } };

	for (;;) {
		poll(fds, 3, next_ms());
		if (fds[1].revents)
			take(WIRE_A);
		if (fds[2].revents)
			take(WIRE_B);
		deliver();
		if (fds[0].revents && !obey())
			_exit(0);
	}
}

/* --- the beginning --------------------------------------------------------------------------- */

static int enter(const char *net_namespace)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/run/netns/%s", net_namespace);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = setns(fd, CLONE_NEWNET) ? -errno : 0;
	close(fd);
	return ret;
}

static int open_end(enum wire_end end, const char *name)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name) };
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	snprintf(names[end], IF_NAMESIZE, "%s", name);
	ends[end] = fd;
	if (fd < 0 || !address.sll_ifindex ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
		setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)))
		return -errno;
	return 0;
}

static int open_ends(const char *net_namespace, const char *const netdevs[WIRE_ENDS])
{
	int end, ret = enter(net_namespace);

	for (end = 0; !ret && end < WIRE_ENDS; end++)
		ret = open_end((enum wire_end)end, netdevs[end]);
	return ret;
}

int wire_start(const char *net_namespace, const char *const netdevs[WIRE_ENDS])
{
	int pair[2], ret = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	if (!fork()) {
		control = pair[1];
		close(pair[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ret = open_ends(net_namespace, netdevs);
		if (send(control, &ret, sizeof(ret), 0) != sizeof(ret) || ret)
			_exit(1);
		run();
	}
	close(pair[1]);
	control = pair[0];
	return recv(control, &ret, sizeof(ret), 0) == sizeof(ret) ? ret : -ECHILD;
}

int wire_whole_frames(const char *netdev)
{
	static const uint32_t offloads[] = { ETHTOOL_STXCSUM, ETHTOOL_SSG, ETHTOOL_STSO,
		ETHTOOL_SGSO };
	struct ethtool_value off = { 0 };
	struct ifreq ifr = { .ifr_data = (void *)&off };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;
	size_t i;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", netdev);
	for (i = 0; !ret && i < sizeof(offloads) / sizeof(offloads[0]); i++) {
		off.cmd = offloads[i];
		ret = ioctl(fd, SIOCETHTOOL, &ifr) ? -errno : 0;
	}
	close(fd);
	return ret;
}

void wire_set(const struct weather *s)
{
	char done;

	if (send(control, s, sizeof(*s), 0) != sizeof(*s) || recv(control, &done, 1, 0) != 1)
		abort();
}
