/*
 * A connection that ends while its request is unanswered. On iWARP the kernel does not call such a
 * request back: to destroy its id waits for the peer, ten seconds if that says nothing. So what the
 * device has of it goes on apart, in an rsocket of nobody's, until the answer is there.
 */
#include "rs/helper.h"

#include "util/clock.h"

enum { ANSWER_US = 12000000 }; /* what siw waits, and some */

static void move(struct evr_rs *from, struct evr_rs *to)
{
	to->id = from->id;
	to->id->context = to;
	to->channel = from->channel;
	to->transport = from->transport;
	to->unanswered = true;
	from->id = NULL;
	from->channel = NULL;
	from->transport = (struct evr_rs_transport){ 0 };
	from->unanswered = false;
}

int evr_rs_linger(struct evr_rs *rs)
{
	struct evr_rs *apart;
	int ret = evr_rs_new(&rs->options, rs->domain, &apart);

	if (ret)
		return ret;
	apart->apart = true;
	apart->state = EVR_RS_FAILED;
	move(rs, apart);
	ret = evr_rs_helper_close(apart, evr_clock_now_us() + ANSWER_US);
	if (ret)
		move(apart, rs);
	evr_rs_put(apart);
	return ret;
}
