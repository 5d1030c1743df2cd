/* A stream that is compressed by filters of zlib's, as one of libevent's own tests has it. */
#include "conform/stream.h"
#include "conform/suite.h"

#include <zlib.h>

static struct side *const client = &bevs.client, *const server = &bevs.server;
static z_stream packer, unpacker;

/* Runs the stream over all of the source. */
static void run(z_stream *z, int (*step)(z_stream *, int), struct evbuffer *from,
	struct evbuffer *to, int flush)
{
	unsigned char in[4096], out[4096];
	int n;

	do {
		n = evbuffer_remove(from, in, sizeof(in));
		z->next_in = in;
		z->avail_in = n > 0 ? (uInt)n : 0;
		do {
			z->next_out = out;
			z->avail_out = sizeof(out);
			step(z, evbuffer_get_length(from) ? Z_NO_FLUSH : flush);
			evbuffer_add(to, out, sizeof(out) - z->avail_out);
		} while (!z->avail_out);
	} while (evbuffer_get_length(from));
}

static enum bufferevent_filter_result pack(struct evbuffer *from, struct evbuffer *to,
	ev_ssize_t limit, enum bufferevent_flush_mode mode, void *arg)
{
	run(&packer, deflate, from, to, Z_SYNC_FLUSH);
	return BEV_OK;
}

static enum bufferevent_filter_result unpack(struct evbuffer *from, struct evbuffer *to,
	ev_ssize_t limit, enum bufferevent_flush_mode mode, void *arg)
{
	run(&unpacker, inflate, from, to, Z_NO_FLUSH);
	return BEV_OK;
}

static void put_on(struct side *side, bufferevent_filter_cb in, bufferevent_filter_cb out)
{
	side_begin(side, bufferevent_filter_new(
				 side->bev, in, out, BEV_OPT_CLOSE_ON_FREE, NULL, NULL));
}

START_TEST(what_is_packed_on_one_side_is_unpacked_on_the_other)
{
	server->on_read = side_check;
	bevs_start();
	put_on(client, NULL, pack);
	put_on(server, unpack, NULL);
	side_write(client, 65000);
	side_await(server, 65000);
	side_write(client, 1);
	side_await(server, 65001);
}
END_TEST

static void start_zlib(void)
{
	packer = unpacker = (z_stream){ .zalloc = Z_NULL };
	ck_assert_int_eq(deflateInit(&packer, Z_DEFAULT_COMPRESSION), Z_OK);
	ck_assert_int_eq(inflateInit(&unpacker), Z_OK);
}

static void stop_zlib(void)
{
	deflateEnd(&packer);
	inflateEnd(&unpacker);
}

TCase *bufferevent_zlib_case(void)
{
	TCase *tcase = tcase_create("bufferevent_zlib");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, testbed.start, testbed.stop);
	tcase_add_checked_fixture(tcase, start_zlib, stop_zlib);
	bevs_add_fixture(tcase);
	tcase_add_test(tcase, what_is_packed_on_one_side_is_unpacked_on_the_other);
	return tcase;
}
