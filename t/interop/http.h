/* The bodies of t/interop/http.sh: some bytes of a pattern, from its beginning, again and again. */
#ifndef EVR_INTEROP_HTTP_H
#define EVR_INTEROP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A prime, so that no size of a buffer divides it. */
enum { HTTP_PATTERN = 1048573 };

static uint8_t http_pattern[HTTP_PATTERN];

static inline void http_pattern_fill(void)
{
	uint32_t seed = 1;
	size_t i;

	for (i = 0; i < HTTP_PATTERN; i++) {
		seed = seed * 1664525 + 1013904223;
		http_pattern[i] = (uint8_t)(seed >> 24);
	}
}

/* How much of len bytes from at on is in one piece. */
static inline size_t http_piece(size_t at, size_t len)
{
	size_t left = HTTP_PATTERN - at % HTTP_PATTERN;

	return len < left ? len : left;
}

static inline bool http_is_pattern(const void *bytes, size_t len, size_t at)
{
	const uint8_t *next = bytes;
	size_t n;

	for (; len; len -= n, at += n, next += n) {
		n = http_piece(at, len);
		if (memcmp(next, http_pattern + at % HTTP_PATTERN, n))
			return false;
	}
	return true;
}

#ifdef EVENT2_BUFFER_H_INCLUDED_
static inline int http_add_pattern(struct evbuffer *to, size_t len)
{
	size_t at, n;
	int ret = 0;

	for (at = 0; at < len && !ret; at += n) {
		n = http_piece(at, len - at);
		ret = evbuffer_add_reference(to, http_pattern, n, NULL, NULL);
	}
	return ret;
}

/* All that is in the buffer, as what is from at on. */
static inline bool http_has_pattern(struct evbuffer *buffer, size_t at)
{
	struct evbuffer_iovec vecs[64];
	struct evbuffer_ptr from;
	size_t seen = 0, len = evbuffer_get_length(buffer);
	int i, n;

	while (seen < len) {
		evbuffer_ptr_set(buffer, &from, seen, EVBUFFER_PTR_SET);
		n = evbuffer_peek(buffer, -1, &from, vecs, 64);
		for (i = 0; i < n && i < 64; seen += vecs[i++].iov_len)
			if (!http_is_pattern(vecs[i].iov_base, vecs[i].iov_len, at + seen))
				return false;
	}
	return true;
}
#endif

#endif
