/* Whose a datagram is, by what it says and by what the device says of it. */
#include "unit/unit.h"

#include <string.h>

#include "proto/grh.h"
#include "rs/dgram.h"

enum { QPN = 77, ROOM = EVR_GRH_LEN + EVR_DGRAM_LEN6 + 1 };

/* Headers of devices: of IPv4, behind bytes of another packet; of IPv6; of IPv4 as a GID. */
static const uint8_t by_ipv4[EVR_GRH_LEN] = { 0x60, [8] = 0xfe, 0x80, [19] = 9, 0x45, [32] = 192, 0,
	2, 1, 192, 0, 2, 9 };
static const uint8_t by_ipv6[EVR_GRH_LEN] = { 0x60, [8] = 0x20, 1, 0xd,
	0xb8, [20] = 0x45, [23] = 1, [24] = 0x20, 1, 0xd, 0xb8, [39] = 9 };
static const uint8_t by_gid[EVR_GRH_LEN] = { 0x60, [18] = 0xff, 0xff, 192, 0, 2, 1, [34] = 0xff,
	0xff, 192, 0, 2, 9 };
static const uint8_t by_link[EVR_GRH_LEN] = { 0x60, [8] = 0xfe, 0x80, [23] = 1, [24] = 0xfe,
	0x80, [39] = 9 };

static const struct evr_dgram_header four = { .version = 4, .port = 7, .addr = { 192, 0, 2, 1 } };
static const struct evr_dgram_header mapped = {
	.version = 6, .port = 7, .addr = { [10] = 0xff, 0xff, 192, 0, 2, 1 }
};
static const struct evr_dgram_header other = { .version = 4, .port = 7, .addr = { 192, 0, 2, 2 } };
static const struct evr_dgram_header six = {
	.version = 6, .port = 7, .addr = { 0x20, 1, 0xd, 0xb8, [12] = 0x45, [15] = 1 }
};
static const struct evr_dgram_header link = {
	.version = 6, .port = 7, .addr = { 0xfe, 0x80, [15] = 1 }
};

static const struct row {
	const char *name;
	const uint8_t *grh;
	const struct evr_dgram_header *says;
	uint32_t qpn;
	bool has_no_grh, is_infiniband, is_wrong;
} rows[] = {
	{ "IPv4", by_ipv4, &four },
	{ "IPv4 that is mapped", by_ipv4, &mapped },
	{ "IPv4, and is another", by_ipv4, &other, .is_wrong = true },
	{ "IPv4, and says IPv6", by_ipv4, &six, .is_wrong = true },
	{ "IPv6", by_ipv6, &six },
	{ "IPv6, and says IPv4", by_ipv6, &four, .is_wrong = true },
	{ "a GID of IPv4", by_gid, &four },
	{ "a GID of IPv4 that is mapped", by_gid, &mapped },
	{ "a GID of IPv4, and is another", by_gid, &other, .is_wrong = true },
	{ "a link", by_link, &link },
	{ "a link, by whom the address told", by_link, &four, .qpn = QPN },
	{ "a link, by another than it told", by_link, &four, .qpn = QPN + 1, .is_wrong = true },
	{ "a link, by one who told another", by_link, &other, .qpn = QPN, .is_wrong = true },
	{ "nothing, as the device does not say", by_ipv4, &other, .has_no_grh = true },
	{ "nothing, as GIDs are no addresses", by_ipv4, &other, .is_infiniband = true },
};

static struct evr_rs *make(void)
{
	struct evr_rs *rs;

	ck_assert_int_eq(evr_rs_new(evr_rs_defaults(), AF_INET6, &rs), 0);
	ck_assert_int_eq(evr_rs_dgram_new(rs), 0);
	return rs;
}

/* What UDP from the address of IPv4 told. */
static void tell(struct evr_rs *rs)
{
	union evr_rs_addr addr;

	evr_rs_addr_from_header(&addr, &four);
	evr_rs_dest_get(rs, &addr)->qpn = QPN;
}

static bool is_read(struct evr_rs *rs, const struct row *row)
{
	struct evr_rs_ud ud = { .rs = rs, .is_roce = !row->is_infiniband };
	struct ibv_wc wc = { .src_qp = row->qpn, .wc_flags = row->has_no_grh ? 0 : IBV_WC_GRH };
	struct evr_rs_packet packet;
	uint8_t bytes[ROOM] = { 0 };
	int len;

	memcpy(bytes, row->grh, EVR_GRH_LEN);
	len = evr_dgram_encode(row->says, bytes + EVR_GRH_LEN, EVR_DGRAM_LEN6);
	wc.byte_len = (uint32_t)(EVR_GRH_LEN + len + 1);
	if (!evr_rs_packet_read(&ud, &packet, bytes, &wc))
		return false;
	ck_assert_uint_eq(packet.len, 1);
	return true;
}

START_TEST(a_packet_is_of_the_address_that_it_came_from)
{
	struct evr_rs *rs = make();
	size_t i;

	tell(rs);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(is_read(rs, &rows[i]) != rows[i].is_wrong, "%s", rows[i].name);
	evr_rs_put(rs);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { a_packet_is_of_the_address_that_it_came_from };

	return unit_main("rs_dgram_packet", tests, 1, NULL, NULL);
}
