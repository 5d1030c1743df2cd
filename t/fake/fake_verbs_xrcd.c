/* XRC domains: what lets a queue pair of one connection fill the SRQ of another. */
#include "fake/fake_verbs.h"

#include <errno.h>

struct ibv_xrcd *fake_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *init)
{
	struct fake_xrcd *xrcd;

	FAKE_GUARD();
	FAKE_VERB_NULL(fake_context_of(context), "ibv_open_xrcd");
	errno = EOPNOTSUPP;
	if (fake_context_of(context)->device->kind != FAKE_IB)
		return NULL;
	errno = EINVAL;
	if (init->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS) ||
		init->fd != -1)
		return NULL;
	xrcd = fake_node_new(sizeof(*xrcd), FAKE_XRCD, fake_context_of(context));
	xrcd->xrcd.context = context;
	errno = 0;
	return &xrcd->xrcd;
}

int fake_close_xrcd(struct ibv_xrcd *verbs)
{
	struct fake_xrcd *xrcd = fake_xrcd_of(verbs);

	FAKE_GUARD();
	FAKE_RELEASE(xrcd->node.context, "ibv_close_xrcd");
	if (xrcd->users)
		return EBUSY;
	fake_node_free(&xrcd->node);
	return 0;
}
