/* What the files of a stream share. */
#ifndef EVR_PROTO_STREAM_INTERNAL_H
#define EVR_PROTO_STREAM_INTERNAL_H

#include "proto/stream.h"

/* The next half of the receive ring, which the peer gets. */
struct evr_sge evr_stream_give_half(struct evr_stream *stream);

/* Each side knows that the other will send no more. */
bool evr_stream_is_over(const struct evr_stream *stream);

/* The send queue has room for a message with data. */
bool evr_stream_can_post_data(const struct evr_stream *stream);

/* So much room in the send ring makes it writable. */
uint32_t evr_stream_low_water(const struct evr_stream *stream);

#endif
