#include "rs/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/conndata.h"
#include "proto/sendq.h"
#include "proto/sge.h"

#define FOLDER "/etc/rdma/rsocket/"
#define TCP_KEEPIDLE_FILE "/proc/sys/net/ipv4/tcp_keepalive_time"

enum {
	QUEUE_SIZE = 384,
	INLINE_SIZE = 64,
	BUFFER_SIZE = 128 * 1024,
	POLLING_TIME_US = 10,
	KEEPIDLE_S = 7200,
	KEEPINTVL_S = 75,
	KEEPCNT = 9,
	BUFFER_MAX = 1 << 30,
	LINE = 32,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct evr_rs_options defaults;
static uint32_t polling_time_us;

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

uint16_t evr_rs_queue_size(int64_t wanted)
{
	return (uint16_t)within(wanted, EVR_SENDQ_MIN, EVR_SENDQ_MAX);
}

uint32_t evr_rs_tx_size(int64_t wanted)
{
	return (uint32_t)within(wanted, EVR_RS_TX_SIZE_MIN, BUFFER_MAX);
}

uint32_t evr_rs_rx_size(int64_t wanted)
{
	return (uint32_t)within(wanted, EVR_RS_RX_SIZE_MIN, BUFFER_MAX);
}

/* A size that the peer can be told; so many at least as were asked for. */
uint32_t evr_rs_iomap_size(int64_t wanted)
{
	uint32_t size = (uint32_t)within(wanted, 0, EVR_IOMAP_SIZE_MAX);
	uint32_t told = evr_iomap_unscale(evr_iomap_scale(size));

	while (told < size)
		told = evr_iomap_unscale((uint8_t)(evr_iomap_scale(told) + 1));
	return told;
}

/* The number that a file begins with, or the value that there is without it. */
static int64_t read_number(const char *path, int64_t value)
{
	char line[LINE], *end;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	long long number;

	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return value;
	line[len] = '\0';
	errno = 0;
	number = strtoll(line, &end, 0);
	return end == line || errno ? value : number;
}

static int64_t setting(const char *name, int64_t value)
{
	char path[sizeof(FOLDER) + LINE];

	snprintf(path, sizeof(path), FOLDER "%s", name);
	return read_number(path, value);
}

static void read_files(void)
{
	int saved = errno;

	defaults = (struct evr_rs_options){
		.sq_size = evr_rs_queue_size(setting("sqsize_default", QUEUE_SIZE)),
		.rq_size = evr_rs_queue_size(setting("rqsize_default", QUEUE_SIZE)),
		.inline_size = (uint32_t)within(
			setting("inline_default", INLINE_SIZE), 0, EVR_RS_INLINE_MAX),
		.iomap_size = evr_rs_iomap_size(setting("iomap_size", 0)),
		.rx_size = evr_rs_rx_size(setting("mem_default", BUFFER_SIZE)),
		.tx_size = evr_rs_tx_size(setting("wmem_default", BUFFER_SIZE)),
		.keepidle_s = (int)within(read_number(TCP_KEEPIDLE_FILE, KEEPIDLE_S), 1, INT32_MAX),
		.keepintvl_s = KEEPINTVL_S,
		.keepcnt = KEEPCNT,
	};
	polling_time_us = (uint32_t)within(setting("polling_time", POLLING_TIME_US), 0, INT32_MAX);
	errno = saved;
}

const struct evr_rs_options *evr_rs_defaults(void)
{
	pthread_once(&once, read_files);
	return &defaults;
}

uint32_t evr_rs_polling_time_us(void)
{
	pthread_once(&once, read_files);
	return polling_time_us;
}
