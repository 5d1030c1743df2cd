/* What a stranger may say wrongly to a datagram rsocket, by UDP or by its queue pair. */
#include "rs/hostile_dgrams.h"

#include <string.h>

#include "proto/dgram.h"

enum { CHANGES = 8, HEADER_MOST = 32, TURNS = 40, NOTHING = 1 << 20 };

enum form { UDP4, UDP6, QP4, QP6, FORMS };

/*
 * Right but for the changes, if any: a header and two bytes, or cut or filled up to a length. Where
 * the stranger's address belongs, it is there before them.
 */
struct words {
	const char *name;
	enum form form;
	size_t len; /* 0: as it is right; NOTHING: none */
	unsigned heard; /* if it is no longer than any may be */
	struct {
		unsigned number; /* of the byte, the first is 1 */
		uint8_t value;
	} changes[CHANGES];
	struct hostile_dgram_way way;
};

static const struct {
	bool by_qp;
	size_t len, own_at;
	uint8_t bytes[HEADER_MOST];
} forms[FORMS] = {
	[UDP4] = { false, 18, 12,
		{ 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 0, [16] = 'n', 'o' } },
	[UDP6] = { false, 30, 0,
		{ 0x55, 0x55, 0x55, 0x55, 6, 0, 28, 0, 0, 0, 0, 0, 32, 1, 13, 184,
			[27] = 1, 'n', 'o' } },
	[QP4] = { true, 10, 4, { 4, 8, 29, 47, [8] = 'n', 'o' } },
	[QP6] = { true, 26, 20,
		{ 6, 24, 29, 47, 0, 0, 0, 0, 32, 1, 13, 184, [24] = 'n', 'o' } },
};

static const struct words words[] = {
	{ "udp: as it is", UDP4, 0, 1 },
	{ "udp: nothing", UDP4, NOTHING, 0 },
	{ "udp: a tag and no more", UDP4, 4, 0 },
	{ "udp: a header but for its end", UDP4, 15, 0 },
	{ "udp: a header and nothing behind", UDP4, 16, 1 },
	{ "udp: another tag", UDP4, 0, 0, { { 1, 0xaa } } },
	{ "udp: version 0", UDP4, 0, 0, { { 5, 0 } } },
	{ "udp: version 5", UDP4, 0, 0, { { 5, 5 } } },
	{ "udp: version 6, as long as version 4", UDP4, 0, 0, { { 5, 6 } } },
	{ "udp: version 6, shorter than it says", UDP4, 0, 0, { { 5, 6 }, { 7, 28 } } },
	{ "udp: version 6 but for its end", UDP6, 27, 0 },
	{ "udp: version 4, as long as version 6", UDP6, 0, 0, { { 5, 4 } } },
	{ "udp: of no length", UDP4, 0, 0, { { 7, 0 } } },
	{ "udp: a length less by one", UDP4, 0, 0, { { 7, 15 } } },
	{ "udp: a length more by one", UDP4, 0, 0, { { 7, 17 } } },
	{ "udp: a length beyond the end", UDP4, 0, 0, { { 7, 255 } } },
	{ "udp: operation 1", UDP4, 0, 0, { { 6, 1 } } },
	{ "udp: operation 6", UDP4, 0, 0, { { 6, 6 } } },
	{ "udp: operation 255", UDP4, 0, 0, { { 6, 255 } } },
	{ "udp: control, and bytes behind it", UDP4, 0, 0, { { 6, 7 } } },
	{ "udp: control that nobody asked for", UDP4, 16, 0, { { 6, 7 }, { 12, 99 } } },
	{ "udp: control of no queue pair", UDP4, 16, 0, { { 6, 7 } } },
	{ "udp: control of everybody's", UDP4, 16, 0,
		{ { 6, 7 }, { 10, 255 }, { 11, 255 }, { 12, 255 } } },
	{ "udp: control of version 6", UDP6, 28, 0, { { 6, 7 }, { 12, 99 } } },
	{ "udp: longer than any", UDP4, 2049, 1 },
	{ "udp: as long as the longest", UDP4, 2048, 1 },
	{ "udp: far longer than any", UDP4, 4096, 1 },
	{ "udp: the address of version 6 by version 4", UDP6, 0, 1 },
	{ "udp: the address of nobody", UDP4, 0, 1,
		{ { 13, 0 }, { 14, 0 }, { 15, 0 }, { 16, 0 } } },
	{ "udp: the address of a group", UDP4, 0, 1, { { 13, 239 } } },
	{ "udp: a queue pair of the CM's", UDP4, 0, 1, { { 12, 1 } } },
	{ "udp: everybody's queue pair", UDP4, 0, 1, { { 10, 255 }, { 11, 255 }, { 12, 255 } } },
	{ "udp: more than 24 bits of a queue pair", UDP4, 0, 1, { { 9, 255 }, { 12, 99 } } },

	{ "qp: as it is", QP4, 0, 1 },
	{ "qp: nothing", QP4, NOTHING, 0 },
	{ "qp: one byte", QP4, 1, 0 },
	{ "qp: a header but for its end", QP4, 7, 0 },
	{ "qp: a header and nothing behind", QP4, 8, 1 },
	{ "qp: version 0", QP4, 0, 0, { { 1, 0 } } },
	{ "qp: version 5", QP4, 0, 0, { { 1, 5 } } },
	{ "qp: version 6, as long as version 4", QP4, 0, 0, { { 1, 6 } } },
	{ "qp: version 6, shorter than it says", QP4, 0, 0, { { 1, 6 }, { 2, 24 } } },
	{ "qp: version 6 but for its end", QP6, 23, 0 },
	{ "qp: version 4, as long as version 6", QP6, 0, 0, { { 1, 4 } } },
	{ "qp: of no length", QP4, 0, 0, { { 2, 0 } } },
	{ "qp: a length less by one", QP4, 0, 0, { { 2, 7 } } },
	{ "qp: a length more by one", QP4, 0, 0, { { 2, 9 } } },
	{ "qp: a length beyond the end", QP4, 0, 0, { { 2, 255 } } },
	{ "qp: from no address", QP4, 0, 0, { { 5, 0 }, { 6, 0 }, { 7, 0 }, { 8, 0 } } },
	{ "qp: from everybody", QP4, 0, 0, { { 5, 255 }, { 6, 255 }, { 7, 255 }, { 8, 255 } } },
	{ "qp: from a group", QP4, 0, 0, { { 5, 239 } } },
	{ "qp: from an address of another machine", QP4, 0, 0, { { 5, 192 }, { 6, 0 }, { 7, 2 } } },
	{ "qp: from the address of a neighbour", QP4, 0, 0, { { 8, 77 } } },
	{ "qp: from a neighbour by version 6", QP6, 0, 0,
		{ { 9, 0 }, { 10, 0 }, { 11, 0 }, { 12, 0 }, { 19, 255 }, { 20, 255 },
			{ 24, 77 } } },
	{ "qp: from another port", QP4, 0, 1, { { 3, 1 } } },
	{ "qp: from port 0", QP4, 0, 1, { { 3, 0 }, { 4, 0 } } },
	{ "qp: from an address of version 6", QP6, 0, 0 },
	{ "qp: from no address of version 6", QP6, 0, 0,
		{ { 9, 0 }, { 10, 0 }, { 11, 0 }, { 12, 0 }, { 21, 0 }, { 22, 0 }, { 23, 0 },
			{ 24, 0 } } },
	{ "qp: from an address of version 4 by version 6", QP6, 0, 1,
		{ { 9, 0 }, { 10, 0 }, { 11, 0 }, { 12, 0 }, { 19, 255 }, { 20, 255 } } },
	{ "qp: from a group of version 6", QP6, 0, 0, { { 9, 255 } } },
	{ "qp: 2049 bytes, or the MTU", QP4, 2049, 1 },
	{ "qp: 2048 bytes, or the MTU", QP4, 2048, 1 },
	{ "qp: 4096 bytes, or the MTU", QP4, 4096, 1 },
	{ "qp: another key", QP4, 0, 0, { { 0 } }, { .qkey_change = 1 } },
	{ "qp: a key of the CM's", QP4, 0, 0, { { 0 } }, { .qkey_change = 0x01234567 } },
	{ "qp: with an immediate", QP4, 0, 1, { { 0 } }, { .imm = true } },
	{ "qp: by an odd route", QP4, 0, 1, { { 0 } }, { .odd_route = true } },
};

/* --- saying it ------------------------------------------------------------------------------- */

static size_t length_of(const struct words *row)
{
	size_t len = row->len ? row->len : forms[row->form].len;

	if (len == NOTHING)
		return 0;
	if (forms[row->form].by_qp && len > hostile_dgrams.hostile.mtu)
		return hostile_dgrams.hostile.mtu;
	return len;
}

static void say(const struct words *row, size_t len)
{
	static uint8_t bytes[HOSTILE_DGRAM_MOST];
	size_t own_at = forms[row->form].own_at;
	int i;

	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, forms[row->form].bytes, forms[row->form].len);
	if (own_at)
		memcpy(bytes + own_at, &hostile_dgrams.hostile.own.sin_addr, 4);
	for (i = 0; i < CHANGES && row->changes[i].number; i++)
		bytes[row->changes[i].number - 1] = row->changes[i].value;
	if (forms[row->form].by_qp)
		hostile_dgram_say_by_qp(&hostile_dgrams.hostile, &row->way, bytes, len);
	else
		hostile_dgram_say_by_udp(&hostile_dgrams.hostile, bytes, len);
}

/* More often than the victim has receives. */
static void say_often(int i)
{
	const struct words *row = &words[i];
	size_t len = length_of(row);
	unsigned wanted = len <= EVR_DGRAM_MAX ? row->heard : 0;
	int turn;

	for (turn = 0; turn < TURNS; turn++) {
		say(row, len);
		ck_assert_uint_eq(
			hostile_dgrams_hear_until_last(forms[row->form].by_qp, false), wanted);
	}
	hostile_dgrams_honest_pass();
}

START_TEST(a_word)
{
	say_often(_i);
}
END_TEST

TCase *hostile_dgrams_words_case(void)
{
	enum { NUM = sizeof(words) / sizeof(words[0]) };
	static TTest named[NUM];
	TCase *tcase = tcase_create("words");
	int i;

	for (i = 0; i < NUM; i++) {
		named[i] = *a_word;
		named[i].name = words[i].name;
		tcase_add_loop_test(tcase, &named[i], i, i + 1);
	}
	return tcase;
}
