/* The devices that the fake can be; a row's facts are those of the driver of that name. */
#include "fake/fake_profile.h"

#include "fake/fake_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct fake_profile profiles[] = {
	{ .name = "rxe", .kind = FAKE_ROCE },
	{
		.name = "siw",
		.kind = FAKE_IWARP,
		.errors_are_negative = true,
		.send_before_rts = ENOTCONN,
		.too_long_is_told = true,
		.reads_are_overtaken = true,
		.read_sink_is_remote = true,
		.flushes_only_signalled = true,
		.late_post = FAKE_LATE_POST_FLUSHED,
	},
	{ .name = "ib", .kind = FAKE_IB, .too_long_is_told = true,
		.late_post = FAKE_LATE_POST_FLUSHED },
	{
		.name = "mlx5",
		.kind = FAKE_ROCE,
		.too_long_is_told = true,
		.max_qp_wr = 32768,
		.max_cqe = 4194303,
		.max_sge = 30,
		.max_sge_rd = 30,
		.max_srq_wr = 32767,
		.max_rd_atom = 16,
		.max_mcast_grp = 240,
		.cqe = FAKE_POWER_OF_TWO,
		.caps_are_rounded = true,
		.send_before_rts = ENOMEM,
		.ece = FAKE_ECE_QUERY,
		.copies_when_polled = true,
		.srq_half_received = true,
		.last_wqe = FAKE_LAST_WQE_LATE,
		.orphans = FAKE_ORPHANS_PURGED,
		.late_post = FAKE_LATE_POST_FLUSHED,
		.grh_is_stale = true,
		.poll_failure = -2,
		.poll_loses = 1,
		.gids_have_gaps = true,
		.disassociates = true,
	},
	{
		.name = "bnxt_re",
		.kind = FAKE_ROCE,
		.too_long_is_told = true,
		.max_sge = 6,
		.max_sge_rd = 6,
		.max_rd_atom = 126,
		.max_mcast_grp = -1,
		.max_inline = 96,
		.no_atomics = true,
		.cqe = FAKE_POWER_OF_TWO,
		.srq_most_is_refused = true,
		.blames_the_oldest = true,
		.access_error_first = true,
		.flush = FAKE_FLUSH_UNASKED,
		.orphans = FAKE_ORPHANS_PURGED,
		.late_post = FAKE_LATE_POST_FLUSHED,
		.wc = FAKE_WC_NO_ADDRESS,
		.disassociates = true,
	},
	{
		.name = "irdma-iwarp",
		.kind = FAKE_IWARP,
		.max_qp_wr = 447,
		.max_cqe = 1048574,
		.max_sge = 3,
		.max_sge_rd = 1,
		.max_srq = -1,
		.max_rd_atom = 32,
		.max_inline = 48,
		.send_before_rts = -1,
		.reads_sge0 = true,
		.too_long_is_told = true,
		.reads_are_overtaken = true,
		.read_sink_is_remote = true,
		.blames_the_oldest = true,
		.keeps_receives = true,
		.flush = FAKE_FLUSH_WHEN_POLLED,
		.orphans = FAKE_ORPHANS_PURGED,
		.late_post = FAKE_LATE_POST_FLUSHED,
		.arming_twice_wakes = true,
		.disassociates = true,
	},
	{
		.name = "cxgb4",
		.kind = FAKE_IWARP,
		.max_sge = 4,
		.max_sge_rd = 1,
		.max_srq = -1,
		.max_rd_atom = 32,
		.max_inline = 200,
		.errors_are_negative = true,
		.send_before_rts = -1,
		.too_long_is_told = true,
		.reads_are_overtaken = true,
		.read_sink_is_remote = true,
		.flush = FAKE_FLUSH_WHEN_POLLED,
		.orphans = FAKE_ORPHANS_PURGED,
		.late_post = FAKE_LATE_POST_REFUSED,
	},
	/* No device is all of this at once: each limit at its smallest, each option missing. */
	{
		.name = "odd",
		.kind = FAKE_ROCE,
		.too_long_is_told = true,
		.max_qp_wr = 64,
		.max_cqe = 255,
		.max_sge = 3,
		.max_sge_rd = 1,
		.max_srq = -1,
		.max_rd_atom = 1,
		.max_mcast_grp = -1,
		.max_inline = 32,
		.comp_vectors = 1,
		.no_ud = true,
		.no_atomics = true,
		.cqe = FAKE_ONE_LESS,
		.inline_is_lowered = true,
		.too_big = -1,
		.errors_are_negative = true,
		.reads_sge0 = true,
		.blames_the_oldest = true,
		.access_error_first = true,
		.last_wqe = FAKE_LAST_WQE_NEVER,
		.orphans = FAKE_ORPHANS_FATAL,
		.late_post = FAKE_LATE_POST_REFUSED,
		.poll_loses = 16,
		.poll_fails_for_ever = true,
		.disassociates = true,
	},
};

static const char *const usual[FAKE_KINDS] = {
	[FAKE_ROCE] = "rxe", [FAKE_IWARP] = "siw", [FAKE_IB] = "ib"
};

const struct fake_profile *fake_profile_named(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

static const struct fake_profile *asked_for(void)
{
	const char *name = getenv("EVR_FAKE_PROFILE");
	const struct fake_profile *profile;

	if (!name || !name[0])
		return NULL;
	profile = fake_profile_named(name);
	if (!profile)
		fake_die("EVR_FAKE_PROFILE=%s: there is no such profile", name);
	return profile;
}

const struct fake_profile *fake_profile_of(enum fake_kind kind)
{
	const struct fake_profile *profile = asked_for();

	return profile && profile->kind == kind ? profile : fake_profile_named(usual[kind]);
}

enum fake_kind fake_kind_to_test(enum fake_kind otherwise)
{
	const struct fake_profile *profile = asked_for();

	return profile ? profile->kind : otherwise;
}

const char *fake_ip(enum fake_kind kind)
{
	static const char *const ips[FAKE_KINDS] = { FAKE_ROCE_IP, FAKE_IWARP_IP, FAKE_IB_IP };

	return ips[kind];
}

enum { DEEP = 256 };

unsigned fake_lacks(enum fake_kind kind)
{
	const struct fake_profile *profile = fake_profile_of(kind);
	unsigned lacks = 0;

	if (kind == FAKE_IWARP)
		lacks |= FAKE_DATAGRAMS | FAKE_GROUPS | FAKE_ATOMICS | FAKE_IMMEDIATES;
	if (kind != FAKE_ROCE)
		lacks |= FAKE_IP_GIDS;
	if (profile->no_ud)
		lacks |= FAKE_DATAGRAMS | FAKE_GROUPS;
	if (profile->max_mcast_grp < 0)
		lacks |= FAKE_GROUPS;
	if (profile->max_srq < 0)
		lacks |= FAKE_SRQS;
	if (profile->max_qp_wr && profile->max_qp_wr < DEEP)
		lacks |= FAKE_DEEP_QUEUES;
	if (profile->no_atomics)
		lacks |= FAKE_ATOMICS;
	return lacks;
}
